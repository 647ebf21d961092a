// Two nodes of one deployment, the first behind a small gateway that stands at the public origin, and a person who has
// signed in and stepped up. The gateway asks the node's check interface about uploads and passes everything else on.
import {once} from 'node:events';
import http from 'node:http';

import {Deployment, Session} from '../support/deployment.js';

function forward(request, response, node, answered) {
    const {method, headers} = request;
    const onward = http.request(node.url + request.url, {method, headers}, answered);

    onward.on('error', () => response.writeHead(502).end());
    return onward;
}

async function readAll(request) {
    const pieces = [];

    for await (const piece of request) pieces.push(piece);
    return Buffer.concat(pieces);
}

// The node comes once it has been started. uploads: those that were let through, {headers, checked, bytes} each.
class Gateway {
    node = null;
    uploads = [];
    #server = http.createServer((request, response) => this.#answer(request, response));

    async listen() {
        await once(this.#server.listen(0, '127.0.0.1'), 'listening');
        this.origin = `http://127.0.0.1:${this.#server.address().port}`;
    }

    close() {
        this.#server.close();
        this.#server.closeAllConnections?.();
    }

    #answer(request, response) {
        if (request.url === '/v1/documents') {
            this.#check(request, response);
            return;
        }
        request.pipe(
            forward(request, response, this.node, (answer) => {
                response.writeHead(answer.statusCode, answer.headers);
                answer.pipe(response);
            }),
        );
    }

    #check(request, response) {
        const asked = {
            'authorization': request.headers.authorization ?? '',
            'x-original-method': request.method,
            'x-original-uri': request.url,
        };

        http.get(`${this.node.internalUrl}/check/auth-request`, {headers: asked}, async (verdict) => {
            verdict.resume();
            const {statusCode, headers} = verdict;
            const bytes = await readAll(request);
            const challenge = headers['www-authenticate'];

            if (statusCode === 200) this.uploads.push({headers: request.headers, checked: headers, bytes});
            response
                .writeHead(statusCode === 200 ? 201 : statusCode, challenge ? {'www-authenticate': challenge} : {})
                .end('{}');
        });
    }
}

export class Stage {
    #gateway = new Gateway();
    #deployment;

    // strike() also ends what has been raised in part.
    // more: arguments of `chatelaine serve`.
    async raise(more = []) {
        await this.#gateway.listen();
        this.origin = this.#gateway.origin;
        this.uploads = this.#gateway.uploads;
        this.#deployment = await Deployment.start([{origin: this.origin, more}, {origin: this.origin, more}]);
        this.folder = this.#deployment.folder;
        [this.#gateway.node, {url: this.other}] = this.#deployment.nodes;
        this.internal = this.#gateway.node.internalUrl;
        this.session = await Session.open(this.origin, this.#deployment.addPerson());
        await this.session.stepUp();
    }

    // See Deployment.
    async untilLeases() {
        await this.#deployment.untilLeases();
    }

    async decide(userCode, verdict) {
        return await this.session.send('POST', `/v1/console/device_enrolments/${userCode}/${verdict}`);
    }

    async strike() {
        this.#gateway.close();
        await this.#deployment?.stop();
    }
}
