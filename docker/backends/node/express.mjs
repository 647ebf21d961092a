// Express 4 or 5: the key of each request is checked before anything behind this middleware runs.
//   app.use(chatelaine({socketPath: '/run/chatelaine/check.sock'}));
//   app.get('/v1/patients', (request, response) => response.json(patientsOf(request.chatelaine.account)));
import {decide} from './chatelaine.mjs';

export function chatelaine(where) {
    return async (request, response, next) => {
        const {who, refusal} = await decide(where, request, request.originalUrl);

        if (who) {
            request.chatelaine = who;
            next();
        } else {
            response.status(refusal.status).set(refusal.headers).json(refusal.body);
        }
    };
}
