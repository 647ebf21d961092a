// Reads the audit trail. Every filter is the server's.
import {call, withQuery} from './api.js';

export const TRAIL = '/v1/console/audit_events';
const SLICES_MAX = 30;

// The next events after that one: {data, hasMore, next}. A search through a long trail ends early now and then, perhaps
// without a single event: goes on until there is one, though not for ever.
export async function readTrail(query, limit, after) {
    let next = after;

    for (let slice = 1; ; slice++) {
        const page = await call('GET', withQuery(TRAIL, {...query, limit, starting_after: next}));

        next = page.next_starting_after ?? page.data.at(-1)?.id;
        if (page.data.length > 0 || !page.has_more || slice === SLICES_MAX)
            return {data: page.data, hasMore: page.has_more, next};
    }
}
