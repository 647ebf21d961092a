// Search over operations, error codes and quick starts: a combobox whose list is moved through by arrow keys (WAI-ARIA's pattern).
import {TEXTS} from './docs_texts.js';
import {announce, h, newId, show} from './dom.js';

const FOUND_MAX = 12;

// Each word must be there; what begins a title comes first.
export function find(things, question) {
    const words = question.toLowerCase().split(/\s+/).filter(Boolean);
    const rank = ({title, words: all}) => {
        const text = all.toLowerCase();

        if (!words.every((word) => text.includes(word))) return 0;
        if (title.toLowerCase().startsWith(words[0])) return 3;
        return words.every((word) => title.toLowerCase().includes(word)) ? 2 : 1;
    };

    if (words.length === 0) return [];
    return things
        .map((thing) => [rank(thing), thing])
        .filter(([weight]) => weight)
        .sort(([a], [b]) => b - a)
        .slice(0, FOUND_MAX)
        .map(([, thing]) => thing);
}

export function searchBox(things) {
    const list = h('ul', {class: 'found', role: 'listbox', id: newId('found'), 'aria-label': 'Matches', hidden: true});
    const input = h('input', {
        type: 'search',
        role: 'combobox',
        autocomplete: 'off',
        spellcheck: 'false',
        placeholder: 'Search',
        'aria-label': 'Search operations, error codes and quick starts',
        'aria-controls': list.id,
        'aria-expanded': 'false',
        'aria-autocomplete': 'list',
        oninput: update,
        onkeydown: press,
        onfocus: update,
    });
    const nothing = h('p', {class: 'found-nothing', hidden: true}, TEXTS.nothing);
    let found = [];
    let chosen = 0;

    function mark() {
        for (const [i, match] of [...list.children].entries()) {
            match.setAttribute('aria-selected', i === chosen);
            if (i === chosen) match.scrollIntoView({block: 'nearest'});
        }
        if (list.children[chosen]) input.setAttribute('aria-activedescendant', list.children[chosen].id);
        else input.removeAttribute('aria-activedescendant');
    }
    function open(isOpen) {
        list.hidden = !isOpen;
        input.setAttribute('aria-expanded', isOpen);
        nothing.hidden = isOpen || input.value.trim() === '' || found.length > 0;
    }
    function update() {
        found = find(things, input.value);
        chosen = 0;
        show(list, found.map(option));
        mark();
        open(found.length > 0);
        if (input.value.trim()) announce(found.length ? TEXTS.found(found.length) : TEXTS.nothing);
    }
    function go({href}) {
        found = [];
        input.value = '';
        open(false);
        input.blur();
        location.assign(href);
    }
    function option(thing) {
        return h(
            'li',
            {role: 'option', id: newId('match'), onmousedown: (event) => event.preventDefault(), onclick: () => go(thing)},
            h('span', {class: 'found-title'}, thing.title),
            h('span', {class: 'found-detail'}, thing.detail),
        );
    }
    function press(event) {
        const step = {ArrowDown: 1, ArrowUp: -1}[event.key];

        if (step && found.length) {
            event.preventDefault();
            chosen = (chosen + step + found.length) % found.length;
            mark();
        } else if (event.key === 'Enter' && found[chosen]) {
            event.preventDefault();
            go(found[chosen]);
        } else if (event.key === 'Escape') {
            input.value = '';
            update();
        }
    }
    document.addEventListener('keydown', (event) => {
        const isTyping = event.target.closest?.('input, textarea, select');
        const isCalled = (event.key === '/' && !isTyping) || (event.key === 'k' && (event.ctrlKey || event.metaKey));

        if (!isCalled) return;
        event.preventDefault();
        input.focus();
    });
    input.addEventListener('blur', () => open(false));
    return [input, h('kbd', {'aria-hidden': 'true'}, '/'), list, nothing];
}
