// Asks a node whether the key of a request is good: for express.mjs and fastify.mjs.
import {once} from 'node:events';
import http from 'node:http';

const PATIENCE_MS = 2000;
const ANSWER_MAX_CHARS = 65536;
const BEARER = /^Bearer +([\w.~+/-]{1,256}={0,2})$/i;
// Idle connections end before --idle-timeout-ms (75 s) would end them.
const agent = new http.Agent({keepAlive: true, maxSockets: 64, timeout: 60000});

async function post(options, question, signal = AbortSignal.timeout(PATIENCE_MS)) {
    const headers = {'Content-Type': 'application/json'};
    const request = http.request({agent, ...options, signal, headers, method: 'POST', path: '/check/verify'});

    request.on('error', () => {}); // once() below throws it, if it comes before the response
    try {
        request.end(JSON.stringify(question));
        const [response] = await once(request, 'response');
        let text = '';

        for await (const piece of response.setEncoding('utf8')) {
            text += piece;
            if (text.length > ANSWER_MAX_CHARS) throw new Error('the answer is too long');
        }
        if (response.statusCode !== 200) throw new Error(`the node answered ${response.statusCode}`);
        return JSON.parse(text);
    } catch (error) {
        // The node may have closed a kept connection. To ask twice is harmless, except that the use may count twice.
        if (!request.reusedSocket || signal.aborted) throw error;
        return await post({...options, agent: false}, question, signal);
    }
}

function refuse(status, code, message, challenge) {
    const headers = {'Cache-Control': 'no-store', ...(challenge && {'WWW-Authenticate': challenge})};

    return {refusal: {status, headers, body: {error: {code, message}}}};
}

// where: {socketPath}, or {host, port} of the internal listener. request: of node:http, not HTTP/2. path: as the client sent it.
// Returns {who}, or {refusal: {status, headers, body}}; never throws.
export async function decide(where, request, path) {
    const sent = request.headersDistinct.authorization ?? []; // request.headers has only the first
    const key = BEARER.exec(sent[0] ?? '')?.[1];
    const network = request.socket.remoteAddress?.split('%')[0];

    if (sent.length > 1) return refuse(400, 'bad_request', 'Authorization was sent more than once.');
    if (!path.startsWith('/')) return refuse(400, 'bad_request', 'The path must begin with /.');
    if (!key) return refuse(401, 'missing_credentials', 'Send Authorization: Bearer and a key.', 'Bearer realm="api"');
    try {
        const answer = await post(where, {key, method: request.method, path, network});
        const {valid, account_id: account, id: principal, kind, mode, scopes} = answer;

        if (valid === true) return {who: {account, principal, kind, mode, scopes}};
        if (valid === false && answer.status >= 400)
            return refuse(answer.status, answer.code, answer.message, answer.www_authenticate);
    } catch (error) {
        console.error(`chatelaine: no verdict: ${error.code ?? error.name}`);
    }
    return refuse(503, 'store_unavailable', 'Nobody can tell now whether the key is good. Repeat the request.');
}
