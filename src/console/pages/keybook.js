// Reading keys: the server lists them, newest first. Searching and sorting happen here, in what was read.
import {call, withQuery} from './api.js';

const PATH = '/v1/console/api_keys';
const BULK = 100;
const USE_DAYS = 30;

export const READ_MAX = 2000;

export const sum = (values) => values.reduce((total, value) => total + value, 0);

// A list of the server, read as far as needed. Use a new one to see what has changed.
export function readList(path, query) {
    const rows = [];
    let isWhole = false;
    let reading = null;

    async function readMore() {
        const page = await call('GET', withQuery(path, {limit: BULK, ...query, starting_after: rows.at(-1)?.id}));

        rows.push(...page.data);
        isWhole = !page.has_more;
    }
    return {
        rows,
        get isWhole() {
            return isWhole;
        },
        async upTo(count) {
            while (!isWhole && rows.length < count) {
                reading ??= readMore().finally(() => {
                    reading = null;
                });
                await reading;
            }
        },
    };
}

// All keys of this mode and status, '' for any.
export const readKeys = ({mode, status}) => readList(PATH, {mode, status});

// Adds the requests per day of these keys to the map, for those that are not in it yet.
export async function readUse(keys, use) {
    const missing = keys.map(({id}) => id).filter((id) => !use.has(id));

    for (let at = 0; at < missing.length; at += BULK) {
        const ids = missing.slice(at, at + BULK).join(',');
        const answer = await call('GET', withQuery('/v1/console/usage', {days: USE_DAYS, key_ids: ids}));

        for (const key of answer.keys) use.set(key.id, key.by_day);
    }
}

// A shorter part of an id would match too many keys.
const ID_PART_MIN = 8;

function wordMatches(key, word) {
    return (
        key.name.toLowerCase().includes(word) ||
        key.last4.toLowerCase() === word ||
        (word.length >= ID_PART_MIN && key.id.includes(word))
    );
}

export const matches = (key, words) => words.every((word) => wordMatches(key, word));

const usedMs = (key) => (key.last_used_at ? Date.parse(key.last_used_at) : 0);
const total = (key, use) => sum(use.get(key.id) ?? []);

// By name of the order; '' is the order in which keys were read, the newest first.
const ORDERS = {
    used: (a, b) => usedMs(b) - usedMs(a),
    unused: (a, b) => usedMs(a) - usedMs(b),
    requests: (a, b, use) => total(b, use) - total(a, use),
    name: (a, b) => a.name.localeCompare(b.name, 'en', {numeric: true, sensitivity: 'base'}),
};

export const ORDER_NAMES = Object.keys(ORDERS);
export const needsUse = (order) => order === 'requests';
export const sorted = (keys, order, use) =>
    order ? keys.toSorted((a, b) => ORDERS[order](a, b, use)) : keys;
