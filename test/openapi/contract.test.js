// The document against live answers: a day in the life through Prism as a validating proxy, judged by Ajv beside it. Then
// the same the other way round: documents that tell one lie each must be shown to be wrong by what was answered on that day,
// so that nothing stands in the document that was not seen.
import assert from 'node:assert/strict';
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';

import {Deployment} from '../support/deployment.js';
import {Contract} from './contract.js';
import {Conversation} from './conversation.js';
import {mutants, mutate, partOf} from './mutants.js';
import {startPrism} from './prism.js';
import {send} from './requests.js';
import {finish, ORIGIN, play} from './scenario.js';

// What this test cannot bring about without waiting for minutes, breaking the program, or a node that speaks TLS. The
// last is seen in test/integration/test_tls.c.
const UNSEEN = new Set([
    ...['request_timeout', 'internal_error', 'overloaded', 'shutting_down'].map((code) => `ErrorCode is never ${code}`),
    ...['request_timeout', 'internal_error'].map((code) => `Other is never ${code}`),
    ...['overloaded', 'shutting_down'].map((code) => `Unavailable is never ${code}`),
    ...['ErrorCode', 'Other'].flatMap((where) =>
        ['tls_required', 'client_certificate_required'].map((code) => `${where} is never ${code}`),
    ),
    'TokenRefused is never expired_token',
    'OAuthOther is never server_error',
    'Other is never not_found', // a policy file may give a folder of the table to a backend
]);

/** Lies that nothing of the day contradicts. */
function survivors(contract, exchanges) {
    const judged = exchanges.map((exchange) => ({
        ...exchange,
        parts: contract.partsOf(exchange.request, exchange.answer),
    }));
    const survives = (mutant) => {
        const liar = new Contract(mutate(contract.document, mutant), {isVariant: true});
        return !judged.some(
            ({request, answer, parts}) => parts.has(partOf(mutant)) && liar.judgeAnswer(request, answer).length,
        );
    };
    return [...mutants(contract.document)].filter(survives).map(([lie]) => lie);
}

/** Some of them told to Prism, in one document: it must refuse to pass on what the node answers. */
async function tellPrism(deployment, contract, {browser, key}) {
    const asKey = {Authorization: `Bearer ${key.secret}`};
    const asPerson = {Cookie: browser.cookie};
    const lies = [
        ['components.schemas.ApiKeyPage has one more', '/v1/api_keys', asKey],
        ['components.schemas.Session.properties.csrf_token is not listed', '/v1/console/session', asPerson],
        ['components.schemas.UsageDay.properties.billable has another type', '/v1/console/usage', asPerson],
        ['SessionRefused is never bearer_not_accepted', '/v1/console/audit_events', {...asPerson, ...asKey}],
        ['the header KeyChallenge has another form', '/v1/whoami', {Authorization: 'Bearer svc_sk_live_x'}],
    ];
    const known = new Map([...mutants(contract.document)].map((mutant) => [mutant[0], mutant]));
    const file = join(deployment.folder, 'lies.json');
    writeFileSync(
        file,
        JSON.stringify(lies.reduce((document, [lie]) => mutate(document, known.get(lie)), contract.document)),
    );
    const prism = await startPrism(deployment, 'believer', file, true);
    for (const [lie, path, headers] of lies) {
        const {status, body} = await send(prism, {path, headers});
        assert.match(body, /errors#VIOLATIONS/, `Prism believes that ${lie}: ${status} ${body}`);
    }
}

const path = join(process.env.CHATELAINE_SOURCE, 'src/api/openapi.json');
const file = readFileSync(path, 'utf8');
const deployment = await Deployment.start([{origin: ORIGIN, more: [
    // Limits that are reached on that day, and no sooner than they are to be.
    ...['--step-up-ms', '3600000', '--keys-max', '20', '--device-keys-max', '1', '--people-max', '8', '--changes-per-minute', '100'],
]}]);
try {
    const contract = new Contract(JSON.parse(file));
    const [strict, lenient] = await Promise.all([
        startPrism(deployment, 'strict', path, true),
        startPrism(deployment, 'lenient', path, false),
    ]);
    const talk = new Conversation(contract, {direct: deployment.nodes[0].url, strict, lenient});
    const actors = await play(talk, deployment, contract, file).catch((error) =>
        assert.fail([error.stack, ...talk.faults].join('\n')),
    );
    await tellPrism(deployment, contract, actors);
    await finish(talk, deployment, actors);
    assert.ok(talk.faults.length === 0, talk.faults.join('\n'));
    console.log(`${talk.exchanges.length} exchanges kept the contract`);

    const unseen = survivors(contract, talk.exchanges);
    assert.deepEqual(
        unseen.filter((lie) => !UNSEEN.has(lie)),
        [],
        'the document says what nobody has seen',
    );
    assert.deepEqual(
        [...UNSEEN].filter((lie) => !unseen.includes(lie)),
        [],
        'has been seen, and need not be excused',
    );
} finally {
    await deployment.stop();
}
