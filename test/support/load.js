// A light load, for test/support/answers.sh: two clients, which pause between requests, so that what is tested has the
// machine. Each request has a connection of its own.
//   load.js FOLDER URL HEADER   until FOLDER/load.enough is there. FOLDER/load.1 and FOLDER/load.2 get a line for each
//                               answer: its status (000: none), its seconds, its request's id and phase
//                               (FOLDER/load.phase), and if it is not 200, when it came and what it says
import {appendFileSync, existsSync, readFileSync} from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import {setTimeout as pause} from 'node:timers/promises';

const PAUSE_MS = 50;
const PATIENCE_MS = 20000;
const [folder, target, header] = process.argv.slice(2);
const protocol = target.startsWith('https:') ? https : http;
const [name, value] = header.split(/: (.*)/);
const ca = process.env.CURL_CA_BUNDLE && readFileSync(process.env.CURL_CA_BUNDLE);

// Not with `agent: false`, which would ask the gateway to close the connection.
async function ask() {
    const agent = new protocol.Agent({keepAlive: true, ca});

    try {
        return await new Promise((resolve, reject) => {
            const signal = AbortSignal.timeout(PATIENCE_MS);
            const asked = protocol.request(target, {agent, headers: {[name]: value}, signal});

            asked.on('error', reject).on('response', async (response) => {
                let text = '';

                response.setEncoding('utf8');
                try {
                    for await (const part of response) text += part;
                    resolve({status: response.statusCode, id: response.headers['x-request-id'] ?? '', text});
                } catch (error) {
                    reject(error);
                }
            });
            asked.end();
        });
    } catch (error) {
        return {status: '000', id: '', text: String(error.message)};
    } finally {
        agent.destroy();
    }
}

async function client(number) {
    while (!existsSync(`${folder}/load.enough`)) {
        const phase = readFileSync(`${folder}/load.phase`, 'utf8').trim();
        const began = performance.now();
        const {status, id, text} = await ask();
        const seconds = ((performance.now() - began) / 1000).toFixed(6);
        const now = new Date().toISOString().slice(11, 23);
        const why = status === 200 ? '' : ` ${now} ${text.replaceAll('\n', '').slice(0, 300)}`;

        appendFileSync(`${folder}/load.${number}`, `${status} ${seconds} ${id} ${phase}${why}\n`);
        await pause(PAUSE_MS);
    }
}

await Promise.all([client(1), client(2)]);
