// A service behind the middleware for Express: answers with who asked.
import express from 'express';

const {CHATELAINE_SOURCE} = process.env;
const {chatelaine} = await import(`${CHATELAINE_SOURCE}/docker/backends/node/express.mjs`);
const app = express();

app.use(chatelaine({socketPath: process.argv[2]}));
app.use((request, response) => response.json(request.chatelaine));
const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));
