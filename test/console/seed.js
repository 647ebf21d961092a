// A clinic that has been at work for a while: keys, devices, a history of use, and entries in the audit trail.
const DAY_MS = 86400000;
const DAYS = 365;

const KEYS = [
    ['Insurer claims', 'live', ['patients:read', 'exchanges:write'], 210],
    ['Sandbox', 'test', ['sandbox:manage', 'patients:read', 'patients:write', 'webhooks:manage'], 38],
    ['Old lab gateway', 'live', ['exchanges:write'], 0, 'revoke'],
    ['Key handed to the freelancer', 'test', null, 12, 'revoke'],
    ['Lab gateway, Ward 3', 'live', ['exchanges:read', 'exchanges:write', 'documents:write'], 940],
    ['Nightly audit export to the archive of the regional health authority', 'live', ['audit:read', 'usage:read'], 24],
    ['Appointment reminders', 'test', ['patients:read'], 61],
    ['Radiology archive', 'live', ['documents:write', 'patients:read'], 480],
    ['Admin scripts', 'live', null, 3],
    ['Ward 3 tablets', 'live', ['patients:read', 'patients:write'], 1650],
    ['Billing export', 'live', ['usage:read', 'exchanges:read'], 130],
    [
        'Integration tests',
        'test',
        ['patients:read', 'patients:write', 'exchanges:read', 'exchanges:write', 'documents:write', 'sandbox:manage'],
        0,
    ],
];

// The same numbers at each run.
function noise(start) {
    let state = start;

    return () => {
        state = (state * 1103515245 + 12345) % 2147483648;
        return state / 2147483648;
    };
}

// Quiet weekends, growth, and one bad day.
function usesOf(perDay, index, daysAgo) {
    const random = noise(index * 7919 + daysAgo * 104729 + 17);
    const weekday = new Date(Date.now() - daysAgo * DAY_MS).getUTCDay();
    const season = weekday === 0 || weekday === 6 ? 0.25 : 1;
    const growth = 1 - (daysAgo / DAYS) * 0.6;

    random();
    return Math.round(perDay * season * growth * (0.7 + 0.6 * random()));
}

const dateOf = (ms) => new Date(ms).toISOString().slice(0, 10);

// As use_pack() in src/records/keys/prelude_record.lua, for redis-cli.
function packUse(lastUse, total, day, onDay) {
    const packed = Buffer.alloc(28);

    packed.writeUIntLE(lastUse, 0, 6);
    packed.writeUIntLE(total, 6, 6);
    packed.write(day, 12);
    packed.writeUIntLE(onDay, 22, 6);
    return packed.toString('hex').replace(/../g, '\\x$&');
}

async function addHistory(deployment, made) {
    const {account} = deployment;
    const commands = [];
    const sum = new Map();

    for (const [index, key] of made.entries()) {
        let total = 0;

        for (let daysAgo = 0; daysAgo < DAYS; daysAgo++) {
            const uses = usesOf(key.perDay, index, daysAgo);
            const date = dateOf(Date.now() - daysAgo * DAY_MS);

            if (uses === 0) continue;
            total += uses;
            sum.set(`${date}:${key.mode}`, (sum.get(`${date}:${key.mode}`) ?? 0) + uses);
            commands.push(`HSET chatelaine:acct:${account}:usage:${date} ${key.id} ${uses}`);
        }
        if (total) {
            const lastUse = Date.now() - (index * index + 1) * 190000;

            commands.push(`ZADD chatelaine:acct:${account}:usage_keys ${total} ${key.id}`);
            commands.push(
                `HSET chatelaine:acct:${account}:key_uses ${key.id} "${packUse(lastUse, total, dateOf(lastUse))}"`,
            );
        }
    }
    for (const [field, uses] of sum) commands.push(`HSET chatelaine:acct:${account}:usage ${field} ${uses}`);
    deployment.redisMany(commands);
}

async function addKeys(session) {
    const made = [];

    for (const [name, mode, scopes, perDay, fate] of KEYS) {
        const {json} = await session.send('POST', '/v1/console/api_keys', {name, mode, ...(scopes && {scopes})});

        made.push({...json, perDay});
        if (fate === 'revoke') await session.send('DELETE', `/v1/console/api_keys/${json.id}`);
    }
    return made;
}

const post = async (deployment, path, form) =>
    await (await fetch(`${deployment.url}${path}`, {method: 'POST', body: new URLSearchParams(form)})).json();

export async function enrolDevice(deployment, name) {
    return await post(deployment, '/v1/auth/device_authorization', {client_id: 'desktop-agent', device_name: name});
}

export async function claimDevice(deployment, codes) {
    return await post(deployment, '/v1/auth/token', {
        grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
        device_code: codes.device_code,
        client_id: 'desktop-agent',
    });
}

async function addDevices(deployment, session) {
    for (const name of ['Reception desk', 'X-ray room, left', 'Ward 3 scanner']) {
        const codes = await enrolDevice(deployment, name);

        await session.send('POST', `/v1/console/device_enrolments/${codes.user_code}/approve`);
        await claimDevice(deployment, codes);
    }
}

export async function seed(deployment) {
    const session = await deployment.signIn(deployment.addPerson());

    await session.stepUp();
    const keys = await addKeys(session);
    await addHistory(deployment, keys);
    await addDevices(deployment, session);
    return {
        keys,
        session,
        people: Array.from({length: 4}, () => deployment.addPerson()),
        newcomers: deployment.newcomers(4),
        enrol: async () => (await enrolDevice(deployment, 'Front office PC')).user_code,
    };
}
