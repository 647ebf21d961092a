// WebSockets (RFC 6455) for tests: a backend that sends back what it gets, and a client. Text frames up to 125 bytes.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { ask } from '../support/deployment.js';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const TEXT = 0x81;

/** A frame with no mask (from a server), or with one of zeros (from a client), which leaves the bytes as they are. */
function frame(text, isMasked) {
  const bytes = Buffer.from(text);
  const head = isMasked ? [TEXT, 0x80 | bytes.length, 0, 0, 0, 0] : [TEXT, bytes.length];

  return Buffer.concat([Buffer.from(head), bytes]);
}

/** Calls told with each text that arrives. */
function read(socket, isMasked, told) {
  const head = isMasked ? 6 : 2;
  let rest = Buffer.alloc(0);

  socket.on('data', (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    while (rest.length >= head && rest.length >= head + (rest[1] & 0x7f)) {
      const end = head + (rest[1] & 0x7f);

      told(rest.subarray(head, end).toString());
      rest = rest.subarray(end);
    }
  });
}

/** Sends back each text. It trusts the headers of its gateway. */
export class Backend {
  #server = http.createServer((_request, response) => response.end('{}'));
  sockets = new Map(); // socket to {principal, account}

  async listen() {
    this.#server.on('upgrade', (request, socket) => this.#upgrade(request, socket));
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return this.#server.address().port;
  }

  #upgrade({ headers }, socket) {
    const accept = createHash('sha1').update(headers['sec-websocket-key'] + GUID).digest('base64');

    this.sockets.set(socket, { principal: headers['x-auth-principal'], account: headers['x-auth-account'] });
    socket.on('error', () => {});
    socket.on('close', () => this.sockets.delete(socket));
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    read(socket, true, (text) => socket.write(frame(text, false)));
  }

  /** Those of a key, device, user or account; without an id, all. */
  end(id) {
    for (const [socket, { principal, account }] of this.sockets)
      if (!id || principal === id || account === id) {
        socket.destroy();
        this.sockets.delete(socket);
      }
  }

  close() {
    this.end();
    this.#server.close();
    this.#server.closeAllConnections?.();
  }
}

/** The events of /check/watch, at one node. */
async function* events(url, signal) {
  const response = await fetch(url, { signal });
  let rest = '';

  if (response.status !== 200) throw new Error(`${url}: ${response.status}`);
  for await (const bytes of response.body) {
    rest += Buffer.from(bytes).toString();
    for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
      const fields = new Map(rest.slice(0, end).split('\n').map((line) => line.split(/: (.*)/s, 2)));

      rest = rest.slice(end + 2);
      if (fields.has('event'))
        yield { name: fields.get('event'), id: fields.get('id'), data: JSON.parse(fields.get('data')) };
    }
  }
}

/** What a backend does that ends its own WebSockets: nothing is sent on one once its revocation has been answered. */
export async function endRevoked(backend, node, signal) {
  let watcher;

  for await (const { name, id, data } of events(`${node}/check/watch?acknowledge=1`, signal)) {
    if (name === 'ready') watcher = data.watcher;
    if (name === 'revoked' || name === 'suspended') backend.end(data.id);
    if (name === 'gap') backend.end();
    if (id) await ask(node, 'POST', `/check/watch/acknowledge?watcher=${watcher}&cursor=${id}`);
  }
}

/** A WebSocket that a client has opened. */
export class Client {
  #socket;
  #heard = [];
  isOpen = true;

  static async open(base, path, secret) {
    const request = http.request(base + path, {
      headers: {
        'Authorization': `Bearer ${secret}`,
        'Connection': 'Upgrade',
        'Upgrade': 'websocket',
        'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
        'Sec-WebSocket-Version': '13',
      },
    });
    const client = new Client();

    request.end();
    const [response, socket] = await new Promise((resolve, reject) => {
      request.on('upgrade', (...all) => resolve(all));
      request.on('response', ({ statusCode }) => reject(new Error(`no WebSocket: ${statusCode}`)));
      request.on('error', reject);
    });
    if (response.statusCode !== 101) throw new Error(`no WebSocket: ${response.statusCode}`);
    client.#socket = socket;
    socket.on('error', () => {});
    socket.on('close', () => (client.isOpen = false));
    socket.on('end', () => (client.isOpen = false));
    read(socket, false, (text) => client.#heard.push(text));
    return client;
  }

  send(text) {
    this.#socket.write(frame(text, true));
  }

  heard(text) {
    return this.#heard.includes(text);
  }

  close() {
    this.#socket.destroy();
  }
}
