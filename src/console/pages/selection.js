// Which of the keys shown are selected, and the bar above the list that acts on them.
import {announce, h, newButton} from './dom.js';
import {TEXTS} from './texts.js';

// act: gets the selected keys, in the order in which they are shown.
export function keySelection(act) {
    const ids = new Set(); // kept while the list is read again
    const boxes = new Map(); // by key, of those shown that can be selected
    const all = h('input', {type: 'checkbox', onchange: () => setAll(all.checked)});
    const revoke = newButton('danger-quiet small', () => act(chosen()));
    const clear = newButton('plain small', clearAll, TEXTS.keys.clearSelection);
    const element = h(
        'div',
        {'class': 'selection', 'role': 'group', 'aria-label': TEXTS.keys.selection},
        h('label', null, all, TEXTS.keys.selectAll),
        revoke,
        clear,
    );
    const chosen = () => [...boxes.keys()].filter(({id}) => ids.has(id));

    function draw() {
        const count = chosen().length;

        for (const [{id}, box] of boxes) box.checked = ids.has(id);
        all.checked = count > 0 && count === boxes.size;
        all.indeterminate = count > 0 && count < boxes.size;
        revoke.textContent = TEXTS.keys.revokeSelected(count);
        revoke.hidden = count === 0;
        clear.hidden = count === 0;
        element.hidden = boxes.size === 0;
    }
    function changed() {
        draw();
        announce(TEXTS.keys.selected(chosen().length));
    }
    function setAll(isChosen) {
        for (const {id} of boxes.keys()) {
            if (isChosen) ids.add(id);
            else ids.delete(id);
        }
        changed();
    }
    // The button that was pressed disappears, so the focus moves.
    function clearAll() {
        setAll(false);
        all.focus();
    }
    return {
        element,
        // Other keys are shown from now on. Those that are not among them are no longer selected.
        begin(keys) {
            const shown = new Set(keys.map(({id}) => id));

            for (const id of ids) if (!shown.has(id)) ids.delete(id);
            boxes.clear();
            draw();
        },
        box(key) {
            const box = h('input', {
                'type': 'checkbox',
                'aria-label': TEXTS.keys.selectNamed(key.name),
                'onchange': () => {
                    if (box.checked) ids.add(key.id);
                    else ids.delete(key.id);
                    changed();
                },
            });

            boxes.set(key, box);
            draw();
            return h('label', {class: 'select-box'}, box);
        },
        // The key is shown without a box from now on.
        drop(key) {
            ids.delete(key.id);
            boxes.delete(key);
            draw();
        },
    };
}
