import {freePort, listens, until} from '../support/deployment.js';

/** A validating proxy in front of the node. Where it is strict, an answer that breaks the document comes out as 500. */
export async function startPrism(deployment, name, document, strict) {
    const port = freePort();
    const {log} = deployment.launch(name, process.execPath, [
        'node_modules/@stoplight/prism-cli/dist/index.js',
        'proxy',
        document,
        deployment.nodes[0].url,
        '--host',
        '127.0.0.1',
        '--port',
        String(port),
        ...(strict ? ['--errors'] : []),
    ]);
    await until(`${name} listens: see ${log}`, () => listens({host: '127.0.0.1', port}));
    return `http://127.0.0.1:${port}`;
}
