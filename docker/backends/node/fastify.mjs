// Fastify 5: the key of each request is checked before its body is read.
//   fastify.decorateRequest('chatelaine', null);
//   fastify.addHook('onRequest', chatelaine({socketPath: '/run/chatelaine/check.sock'}));
//   fastify.get('/v1/patients', async (request) => patientsOf(request.chatelaine.account));
import {decide} from './chatelaine.mjs';

export function chatelaine(where) {
    return async (request, reply) => {
        const {who, refusal} = await decide(where, request.raw, request.url);

        request.chatelaine = who ?? null;
        if (!who) await reply.code(refusal.status).headers(refusal.headers).send(refusal.body);
    };
}
