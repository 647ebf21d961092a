// A service on Node.js that lets a Chatelaine node decide about API keys, and needs no HTTP for those that the node has
// in its table:
//     node client.js /run/chatelaine/table.sock 8081
// Reads API keys from stdin, one in a line, each as if a request GET /v1/patients had come with it, and prints what was
// decided, and by whom. The node's internal listener is at that port of this machine.
import koffi from 'koffi';
import {createInterface} from 'node:readline';

const PATH = '/v1/patients';
const PATIENTS_READ = 1 << 2; // enum chatelaine_scope in chatelaine/check.h
const REFRESH_MS = 1000;

const library = koffi.load(process.env.CHATELAINE_LIBRARY ?? 'libchatelaine-check.so.1');

koffi.opaque('chatelaine_handle');
// In chatelaine/library.h.
koffi.struct('chatelaine_answer', {
    account: koffi.array('char', 32),
    principal: koffi.array('char', 32),
    scopes: 'uint32_t',
    is_device: 'uint8_t',
    is_live: 'uint8_t',
    unused: koffi.array('uint8_t', 2),
});
const open = library.func('chatelaine_handle *chatelaine_open(const char *path, const char *deployment, int64_t owner)');
const refresh = library.func('int chatelaine_refresh(chatelaine_handle *handle)');
const ask = library.func(
    'int chatelaine_ask(chatelaine_handle *handle, const char *secret, size_t length, uint32_t scopes, ' +
        '_Out_ chatelaine_answer *ret_answer)',
);
const trouble = library.func('const char *chatelaine_trouble(chatelaine_handle *handle)');
const close = library.func('void chatelaine_close(chatelaine_handle *handle)');

// For one thread; each worker has its own.
class Table {
    #handle;
    #timer;
    #hasTable = false;

    constructor(path) {
        this.#handle = open(path, null, -1);
        if (!this.#handle) throw new Error('no memory for a table');
        this.#timer = setInterval(() => this.#refresh(), REFRESH_MS);
        this.#refresh();
    }

    #refresh() {
        this.#hasTable = refresh(this.#handle) === 1;
        if (!this.#hasTable) console.error('no table:', trouble(this.#handle));
    }

    // Who asks, or null: then ask the node.
    ask(secret, scopes) {
        const answer = {};

        if (!this.#hasTable) this.#refresh();
        return ask(this.#handle, secret, Buffer.byteLength(secret), scopes, answer) === 1 ? answer : null;
    }

    close() {
        clearInterval(this.#timer);
        close(this.#handle);
    }
}

// The node's answer is final: what it refuses is refused.
async function askNode(port, secret) {
    const {status, headers} = await fetch(`http://127.0.0.1:${port}/check/auth-request`, {
        headers: {'Authorization': `Bearer ${secret}`, 'X-Original-Method': 'GET', 'X-Original-URI': PATH},
    });

    return [status, headers.get('X-Auth-Account') ?? '', headers.get('X-Auth-Principal') ?? ''];
}

const [path, port] = process.argv.slice(2);
const table = new Table(path);

for await (const secret of createInterface({input: process.stdin})) {
    const who = table.ask(secret, PATIENTS_READ);

    if (who) console.log('table', 200, who.account, who.principal);
    else console.log('http', ...(await askNode(port, secret)));
}
table.close();
