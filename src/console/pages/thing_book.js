// The things that an entry of the trail may be by or about, to choose from. Names may be alike, or say that they are
// something else, so a name never stands for the id that it happens to find.
import {READ_MAX, readKeys, readList} from './keybook.js';
import {currentSession} from './session.js';
import {RESERVED_IDS, thingOf} from './things.js';

// Who cannot be forged comes first: those without an id, then people. Keys of any name come after them.
const ORDER = ['command', 'service', 'stranger', 'person', 'key', 'device'];

const folded = (text) => text.normalize('NFKC').toLowerCase();
const nameOf = ({name, words}) => words ?? name;

const isCalled = (thing, text) => folded(nameOf(thing)) === folded(text) || thing.last4 === text || thing.id === text;
const isLike = (thing, text) => folded(`${nameOf(thing)} ${thing.last4 ?? ''} ${thing.id}`).includes(folded(text));

const rankOf = ({kind}) => ORDER.indexOf(kind);

// Of people who may not see the list: none.
async function readNamed(path) {
    const list = readList(path);

    await list.upTo(READ_MAX).catch((refusal) => {
        if (refusal.status !== 403) throw refusal;
    });
    return list.rows;
}

export function thingBook() {
    const {user} = currentSession();
    const things = new Map(); // by id
    let reading = null;

    function add(id, name, last4) {
        if (!id || (!name && things.has(id))) return;
        things.set(id, thingOf(id, name ?? '', last4 ?? things.get(id)?.last4));
    }
    const ordered = (matches) =>
        [...things.values()].filter(matches).sort((a, b) => rankOf(a) - rankOf(b) || nameOf(a).localeCompare(nameOf(b), 'en'));

    async function readAll() {
        const book = readKeys({mode: '', status: ''});
        const [people, devices] = await Promise.all([
            readNamed('/v1/console/users'),
            readNamed('/v1/console/device_keys'),
            book.upTo(READ_MAX),
        ]);

        for (const {id, email} of people) add(id, email);
        for (const {id, name, last4} of [...book.rows, ...devices]) add(id, name, last4);
    }

    for (const id of RESERVED_IDS) add(id);
    add(user.id, user.email);
    return {
        // What stands in entries of the trail. A device that only has a name has no id.
        learn(events) {
            for (const event of events) {
                if (event.actor) add(event.actor, event.actor_name);
                if (event.target && event.target_kind !== 'device') add(event.target, event.target_name);
            }
        },
        // Everything that has a name now; once. Throws a Refusal.
        read() {
            reading ??= readAll().catch((refusal) => {
                reading = null;
                throw refusal;
            });
            return reading;
        },
        // Null if it is not known.
        thing: (id) => things.get(id) ?? null,
        called: (text) => ordered((thing) => isCalled(thing, text)),
        like: (text) => ordered((thing) => isLike(thing, text)),
    };
}
