// A dialog that says what will happen, acts when the user agrees, and then says what did happen.
import {openDialog} from './dialog.js';
import {announce, h, newButton, newId, show} from './dom.js';
import {foot, notice, workingForm} from './form.js';
import {explain} from './parts.js';
import {TEXTS} from './texts.js';

// The button that ends a dialog. It gets the focus.
export function closeFoot(dialog, text = TEXTS.close, ...more) {
    const button = newButton('primary', () => dialog.close(), text);

    setTimeout(() => button.isConnected && button.focus());
    return foot(null, ...more, button);
}

// fields: as of workingForm(). act() does it. done(answer, dialog) returns what to show then, {title, content}, or
// nothing to close the dialog. explainOwn(refusal): content for refusals that this dialog knows, or nothing.
export function openAction({
    title,
    shape,
    name,
    fields,
    submitText,
    workingText,
    buttonClass,
    act,
    done,
    explainOwn = () => null,
    closed,
}) {
    const form = workingForm({
        fields,
        submitText,
        workingText,
        buttonClass,
        cancel: () => dialog.close(),
        submit: async () => {
            const answer = await act();
            const view = done(answer, dialog);

            if (view) {
                dialog.replace(view.title, ...view.content);
                announce(view.title);
            } else {
                dialog.close();
            }
        },
        explain: (refusal) => explainOwn(refusal) ?? [explain(refusal)],
    });
    const dialog = openDialog({title, shape, name, content: form.element, closed});

    return dialog;
}

// Redraws a list, after an act on one of its rows. If the focus was on a row that is gone, the page's heading gets it.
export function redraw(container, ...children) {
    const hadFocus = container.contains(document.activeElement);

    show(container, ...children);
    if (hadFocus && document.activeElement === document.body)
        document.querySelector('main h1')?.focus({preventScroll: true});
}

// Texts for what may have happened although no good answer came.
export function explainUncertain(refusal, {unconfirmed, unanswered}) {
    if (refusal.kind === 'offline') return [notice('warn', h('p', null, unanswered))];
    if (refusal.kind === 'away') return [notice('warn', h('p', null, unconfirmed))];
    return null;
}

// One of several cards, as a field. options: {value, title, text}.
export function choiceField({legend, name, options, value, problem}) {
    const id = newId('choice');
    const error = h('p', {class: 'field-error', id: `${id}-error`});
    const inputs = options.map((option) =>
        h('input', {type: 'radio', name, value: option.value, checked: option.value === value}),
    );
    const cards = options.map((option, i) =>
        h(
            'label',
            {class: 'choice-card'},
            inputs[i],
            h('span', null, h('strong', null, option.title), h('span', {class: 'hint'}, option.text)),
        ),
    );
    const element = h(
        'fieldset',
        {'class': 'choice', 'role': 'radiogroup', 'aria-describedby': `${id}-error`},
        h('legend', null, legend),
        h('div', {class: 'choice-cards'}, cards),
        error,
    );

    element.addEventListener('change', () => setError(''));
    function setError(text) {
        error.textContent = text;
        element.setAttribute('aria-invalid', String(Boolean(text))); // empty would mean false
    }
    const chosen = () => inputs.find((input) => input.checked)?.value ?? '';

    return {element, input: inputs[0], setError, problem, value: chosen};
}
