// Fastify 5: the key of each request is checked before its body is read.
//   fastify.decorateRequest('chatelaine', null);
//   fastify.addHook('onRequest', chatelaine({socketPath: '/run/chatelaine/check.sock'}));
//   fastify.get('/v1/patients', async (request) => patientsOf(request.chatelaine.account));
import {decide} from './chatelaine.mjs';

export function chatelaine(where) {
    // done() is never called for a refused request, even if its client has gone before it was answered.
    return (request, reply, done) => {
        decide(where, request.raw, request.url).then(({who, refusal}) => {
            request.chatelaine = who ?? null;
            if (who) done();
            else reply.code(refusal.status).headers(refusal.headers).send(refusal.body);
        });
    };
}
