// A field for somebody or something, chosen from a list that tells kind, name, last four characters and id. What is typed
// narrows the list; a whole name chooses only if nothing else has it.
import {ACTIVITY} from './activity_texts.js';
import {h, newId, show} from './dom.js';
import {field} from './form.js';
import {kindWords, thingElement} from './things.js';

const SHOWN = 8;
const ID = /^(usr|key|dev|acct)_[0-9a-z]{26}$/;

const nameOf = (thing) => thing.words || thing.name || thing.id;

// value: an id. change(id): another was chosen; '' for none. Returns {element, update(id)}: call when the state or the
// known names have changed.
export function thingField({label, hint, value, book, change}) {
    const listId = newId('things');
    const list = h('ul', {'id': listId, 'role': 'listbox', 'aria-label': ACTIVITY.choices(label)});
    const status = h('p', {class: 'hint', role: 'status'});
    const panel = h('div', {class: 'thing-panel', hidden: true}, status, list);
    const chosenKind = h('span');
    const named = field({
        label,
        hint: chosenKind,
        input: h('input', {
            'type': 'text',
            'role': 'combobox',
            'aria-autocomplete': 'list',
            'aria-controls': listId,
            'aria-expanded': 'false',
            'autocomplete': 'off',
            'spellcheck': 'false',
            'placeholder': hint,
        }),
    });
    const {input} = named;
    let chosen = value;
    let shownText = ''; // what the field shows for what was chosen
    let things = []; // in the list
    let active = -1;

    function close() {
        panel.hidden = true;
        show(list);
        active = -1;
        input.setAttribute('aria-expanded', 'false');
        input.removeAttribute('aria-activedescendant');
    }
    function update(id) {
        const thing = id ? (book.thing(id) ?? {id}) : null;

        if (id !== chosen || input.value === shownText || input.value === id) {
            shownText = thing ? nameOf(thing) : '';
            input.value = shownText;
        }
        chosen = id;
        show(chosenKind, thing?.kind ? [kindWords(thing), thing.last4 ? ` …${thing.last4}` : null] : null);
    }
    function choose(id) {
        named.setError('');
        close();
        chosen = ''; // so that the field shows it, whatever was typed
        input.value = shownText = '';
        update(id);
        change(id);
    }
    function option(thing, i) {
        const element = h(
            'li',
            {'role': 'option', 'id': `${listId}-${i}`, 'aria-selected': 'false', 'onclick': () => choose(thing.id)},
            thingElement(thing),
            thing.words ? null : h('code', {class: 'thing-id'}, thing.id),
        );

        element.addEventListener('mousedown', (event) => event.preventDefault()); // the field keeps the focus
        return element;
    }
    function open(found) {
        things = found.slice(0, SHOWN);
        active = -1;
        show(status, ACTIVITY.matches(found.length, things.length));
        show(list, things.map(option));
        list.hidden = things.length === 0;
        panel.hidden = false;
        input.setAttribute('aria-expanded', 'true');
        input.removeAttribute('aria-activedescendant');
    }
    function narrow() {
        const text = input.value.trim();

        if (text && text !== shownText) open(book.like(text));
        else close();
    }
    function move(by) {
        if (panel.hidden) narrow();
        if (panel.hidden || things.length === 0) return;
        active = (active + by + things.length + (active < 0 && by < 0 ? 1 : 0)) % things.length;
        [...list.children].forEach((each, i) => each.setAttribute('aria-selected', String(i === active)));
        input.setAttribute('aria-activedescendant', `${listId}-${active}`);
        list.children[active].scrollIntoView({block: 'nearest'});
    }
    // What was typed and left, or entered.
    async function resolve() {
        const text = input.value.trim();

        if (text === shownText) return;
        named.setError('');
        if (text === '' || ID.test(text)) {
            choose(text);
            return;
        }
        try {
            await book.read();
        } catch (refusal) {
            if (refusal.kind !== 'cancelled') named.setError(ACTIVITY.notRead);
            return;
        }
        if (input.value.trim() !== text || !input.isConnected) return;
        const found = book.called(text);
        if (found.length === 1) {
            choose(found[0].id);
        } else if (found.length === 0) {
            named.setError(ACTIVITY.nobody(text));
        } else {
            named.setError(ACTIVITY.several(found.length, text));
            if (document.activeElement === input) open(found);
        }
    }
    const KEYS = {
        ArrowDown: () => move(1),
        ArrowUp: () => move(-1),
        Enter: () => (active >= 0 ? choose(things[active].id) : resolve()),
        Escape: () => {
            if (panel.hidden) return false;
            close();
            return true;
        },
    };

    input.addEventListener('keydown', (event) => {
        if (Object.hasOwn(KEYS, event.key) && KEYS[event.key](event) !== false) event.preventDefault();
    });
    input.addEventListener('input', () => {
        narrow();
        book.read().then(
            () => {
                if (!panel.hidden && active < 0) narrow();
            },
            () => {}, // what is known already can be chosen
        );
    });
    input.addEventListener('blur', () => {
        close();
        resolve();
    });
    named.element.classList.add('thing-field');
    named.element.append(panel);
    update(value);
    return {element: named.element, update};
}
