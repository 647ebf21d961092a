// A service behind the middleware for Fastify: answers with who asked. It asks the internal listener.
import fastify from 'fastify';

const {CHATELAINE_SOURCE} = process.env;
const {chatelaine} = await import(`${CHATELAINE_SOURCE}/docker/backends/node/fastify.mjs`);
const {hostname, port} = new URL(process.argv[3]);
const app = fastify();

app.decorateRequest('chatelaine', null);
app.addHook('onRequest', chatelaine({host: hostname, port}));
app.all('/*', async (request) => request.chatelaine);
await app.listen({port: 0, host: '127.0.0.1'});
console.log(app.server.address().port);
