// The gateways as they are shipped, with the addresses of a test.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, listens, until } from '../support/deployment.js';

const SHIPPED = join(process.env.CHATELAINE_SOURCE, 'docker/gateways');
const read = (name) => readFileSync(join(SHIPPED, name), 'utf8');

export const isInstalled = (program) => spawnSync(program, [program === 'caddy' ? 'version' : '-v']).error === undefined;

/** Its configuration, and how it is started. fit: puts in the addresses. */
const GATEWAYS = {
  nginx: (fit, folder, port) => ({
    'nginx.conf': fit(read('nginx/nginx.conf'))
      .replace(/https:(?=\/\/(?:nodes|checks|backend|\$checked))/g, 'http:')
      .replace('include tls.conf;', '')
      .replace('listen 8443 ssl', `listen 127.0.0.1:${port}`)
      .replace('127.0.0.1:8082', `unix:${folder}/health.sock`)
      .replace(/\/dev\/stdout/g, `${folder}/log`),
    ...Object.fromEntries(['grpc.conf', 'fastcgi.conf', 'allowed.conf'].map((name) => [name, read(`nginx/${name}`)])),
    command: ['nginx', '-e', `${folder}/error`, '-c', `${folder}/nginx.conf`, '-g', `daemon off;${process.getuid() === 0 ? ' user root;' : ''}`],
  }),
  haproxy: (fit, folder, port) => ({
    'haproxy.cfg': fit(read('haproxy/haproxy.cfg')).replace('bind :8080', `bind 127.0.0.1:${port}`).replaceAll('/etc/haproxy/', `${folder}/`),
    'forward-auth.lua': fit(read('haproxy/forward-auth.lua')),
    command: ['haproxy', '-db', '-f', `${folder}/haproxy.cfg`],
  }),
  caddy: (fit, folder, port) => ({
    Caddyfile: fit(read('caddy/Caddyfile')).replace(/^:8080 \{/m, `http://:${port} {\nbind 127.0.0.1`).replace(/^\s*health_.*$/gm, ''),
    command: ['env', `XDG_DATA_HOME=${folder}`, `XDG_CONFIG_HOME=${folder}`, 'caddy', 'run', '--adapter', 'caddyfile', '--config', `${folder}/Caddyfile`],
  }),
};

/** node, check, backend: ports on 127.0.0.1. change: of its configuration. Returns its port, and the folder of its files. */
export async function startShipped(deployment, gateway, { name = gateway, node, check, backend, change = (text) => text }) {
  const port = freePort();
  const folder = join(deployment.folder, name);
  const fit = (text) =>
    change(
      text
        .replace(/node[123]:8080 port 8081/g, `127.0.0.1:${node} port ${check}`)
        .replace(/node[123]:8081/g, `127.0.0.1:${check}`)
        .replace(/node[123]:8080/g, `127.0.0.1:${node}`)
        .replace(/backend:(8080|8443)/, `127.0.0.1:${backend}`)
        .replaceAll('/run/chatelaine/check.sock', `${folder}/none`)
        .replaceAll('abns@chatelaine-checks', `abns@${name}-${process.pid}`)
        .replaceAll('/tmp/', `${folder}/`),
    );
  const { command, ...files } = GATEWAYS[gateway](fit, folder, port);

  mkdirSync(folder);
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  const child = deployment.launch(name, command[0], command.slice(1));
  await until(`${name} listens`, () => listens({ host: '127.0.0.1', port }));
  return { port, folder, child };
}
