// Requests as they are written, each on a connection of its own.
import {request} from 'node:http';
import {connect} from 'node:net';
import {gunzipSync} from 'node:zlib';

import {PATIENCE_MS} from '../support/deployment.js';

/** {status, headers, body (text), json}. Headers are an object;
 * an array as a value is sent as several lines. */
export function send(base, {method = 'GET', path, headers = {}, body}) {
    const {hostname, port} = new URL(base);
    const length = body === undefined ? {} : {'Content-Length': Buffer.byteLength(body)};
    return new Promise((resolve, reject) => {
        const options = {
            hostname,
            port,
            method,
            path,
            headers: {...headers, ...length},
            agent: false,
            timeout: PATIENCE_MS,
        };
        const asked = request(options, (answer) => {
            const pieces = [];
            answer.on('data', (piece) => pieces.push(piece));
            answer.on('error', reject);
            answer.on('end', () => {
                const bytes = Buffer.concat(pieces);
                const text = (answer.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString(
                    'utf8',
                );
                const isJson = /^application\/([a-z.]+\+)?json/.test(answer.headers['content-type'] ?? '');
                resolve({
                    status: answer.statusCode,
                    headers: answer.headers,
                    body: text,
                    json: isJson && text ? JSON.parse(text) : undefined,
                });
            });
        });
        asked.on('timeout', () => asked.destroy(new Error(`${method} ${path}: no answer`)));
        asked.on('error', reject);
        asked.end(body);
    });
}

/** The same for what is no HTTP that a client library would write: bytes out, bytes in. */
export function sendBytes(base, bytes) {
    const {hostname, port} = new URL(base);
    return new Promise((resolve, reject) => {
        let text = '';
        const socket = connect({host: hostname, port}, () => socket.end(bytes));
        socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error('no answer')));
        socket.on('error', reject);
        socket.on('data', (piece) => (text += piece));
        socket.on('end', () => {
            const [head, body] = text.split('\r\n\r\n');
            const [first, ...lines] = head.split('\r\n');
            const headers = Object.fromEntries(
                lines.map((line) => [
                    line.slice(0, line.indexOf(':')).toLowerCase(),
                    line.slice(line.indexOf(':') + 2),
                ]),
            );
            resolve({status: Number(first.split(' ')[1]), headers, body, json: JSON.parse(body)});
        });
    });
}
