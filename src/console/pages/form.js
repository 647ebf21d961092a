// Fields with their labels, hints and errors, and a form that shows when it is busy.
import {countDown} from './clock.js';
import {h, icon, newButton, newId, show} from './dom.js';
import {wait} from './format.js';
import {TEXTS} from './texts.js';

// problem(value): why what was entered cannot be sent. A form with this field asks first.
export function field({label, hint, input, aside, problem}) {
    const id = input.id || newId('field');
    const hintElement = hint ? h('p', {class: 'hint', id: `${id}-hint`}, hint) : null;
    const error = h('p', {class: 'field-error', id: `${id}-error`});
    const element = h(
        'div',
        {class: 'field'},
        h('div', {class: 'field-label'}, h('label', {for: id}, label), aside),
        input,
        hintElement,
        error,
    );

    input.id = id;
    input.setAttribute('aria-describedby', hint ? `${id}-error ${id}-hint` : `${id}-error`);
    input.addEventListener('input', () => setError(''));
    function setError(text) {
        show(error, text);
        if (text) input.setAttribute('aria-invalid', 'true');
        else input.removeAttribute('aria-invalid');
    }
    return {element, input, setError, problem, value: () => input.value.trim()};
}

export const textField = ({label, hint, problem, ...attributes}) =>
    field({label, hint, problem, input: h('input', {type: 'text', autocomplete: 'off', ...attributes})});

const passwordProblem = (value) => !value && TEXTS.signIn.passwordMissing;

// Fields with data-secret are emptied when the session ends.
export function passwordField(attributes, {label = TEXTS.signIn.password, hint, problem = passwordProblem} = {}) {
    const input = h('input', {
        'type': 'password',
        'name': 'password',
        'autocomplete': 'current-password',
        'required': true,
        'maxlength': 256,
        'data-secret': true,
        ...attributes,
    });
    const turn = () => {
        const shown = input.type === 'text';

        input.type = shown ? 'password' : 'text';
        toggle.textContent = shown ? TEXTS.signIn.showPassword : TEXTS.signIn.hidePassword;
        toggle.setAttribute('aria-pressed', String(!shown));
    };
    const toggle = newButton('plain small', turn, TEXTS.signIn.showPassword, {
        'aria-pressed': 'false',
        'aria-label': `${TEXTS.signIn.showPassword} ${label.toLowerCase()}`,
    });

    return {...field({label, hint, input, problem, aside: toggle}), value: () => input.value};
}

// Password managers look for the user name that belongs to a password.
export const userNameField = (email) =>
    h(
        'span',
        {'class': 'unseen', 'aria-hidden': 'true'},
        h('input', {
            type: 'text',
            name: 'email',
            autocomplete: 'username',
            tabindex: '-1',
            readonly: true,
            value: email,
        }),
    );

export function codeField({label = TEXTS.signIn.code, hint = TEXTS.signIn.codeHint} = {}) {
    const input = h('input', {
        'type': 'text',
        'name': 'totp',
        'inputmode': 'numeric',
        'autocomplete': 'one-time-code',
        'pattern': '[0-9 ]*',
        'required': true,
        'maxlength': 9,
        'class': 'code',
        'spellcheck': 'false',
        'data-secret': true,
    });

    const problem = (code) => !/^[0-9]{6}$/.test(code) && TEXTS.signIn.codeMissing;
    const value = () => input.value.replace(/\s/g, ''); // codes copied from apps may have a blank in the middle

    return {...field({label, hint, input, problem}), value};
}

function emailProblem(value) {
    if (!value) return TEXTS.signIn.emailMissing;
    return !/^[^@\s]+@[^@\s]+$/.test(value) && TEXTS.signIn.emailInvalid;
}

// attributes: of the input. The default is a field of whoever signs in.
export const emailField = ({hint, ...attributes} = {}) =>
    field({
        label: TEXTS.signIn.email,
        hint,
        problem: emailProblem,
        input: h('input', {
            type: 'email',
            name: 'email',
            autocomplete: 'username',
            required: true,
            maxlength: 254,
            spellcheck: 'false',
            autocapitalize: 'none',
            ...attributes,
        }),
    });

export function notice(kind, ...content) {
    const icons = {error: 'warn', warn: 'warn', good: 'done', info: 'info'};

    return h('div', {class: `notice ${kind}`}, icon(icons[kind]), h('div', null, content));
}

// The place for errors in every form and dialog: right above the buttons, which stay in view however long the form is.
export const problemSpace = () => h('div', {class: 'form-problem', role: 'alert', tabindex: '-1'});

export function foot(problem, ...buttons) {
    return h('div', {class: 'form-foot'}, problem, h('div', {class: 'actions'}, buttons));
}

// Shows what is wrong with the fields and focuses the first that cannot be sent. False if there is one.
function mayBeSent(fields) {
    const wrong = fields.filter((each) => {
        const text = each.problem(each.value());

        each.setError(text || '');
        return text;
    });

    wrong[0]?.input.focus();
    return wrong.length === 0;
}

// fields: elements, and fields as field() makes them: submit() runs when these have no problem. It may throw. The error
// gets the focus, unless explain() gave it to a field. The button stays disabled while the user is throttled.
export function workingForm({
    fields,
    submitText,
    workingText,
    submit,
    explain,
    buttonClass = 'primary',
    cancel,
    cancelText = TEXTS.cancel,
}) {
    const problem = problemSpace();
    const button = h('button', {type: 'submit', class: buttonClass}, submitText);
    const cancelButton = cancel && newButton('secondary', () => isWorking || cancel(), cancelText);
    const elements = fields.map((each) => each?.element ?? each);
    const form = h('form', {novalidate: true, onsubmit: run}, elements, foot(problem, cancelButton, button));
    let isWorking = false;
    let heldUntil = 0;

    function setBusy(busy) {
        isWorking = busy;
        form.toggleAttribute('data-working', busy);
        button.setAttribute('aria-disabled', String(busy || heldUntil > Date.now()));
        cancelButton?.setAttribute('aria-disabled', String(busy));
        button.textContent = busy ? workingText : api.submitText;
    }
    function hold(milliseconds) {
        const left = h('span');

        heldUntil = Date.now() + milliseconds;
        // The countdown is not read out each second.
        problem.replaceChildren(h('div', {'aria-live': 'off'}, notice('warn', left)));
        setBusy(false);
        countDown(
            heldUntil,
            (leftMs) => show(left, TEXTS.problem.throttled(wait(leftMs))),
            () => {
                setBusy(isWorking);
                problem.replaceChildren(notice('info', TEXTS.problem.throttledOver));
            },
        );
        problem.focus();
    }
    function showRefusal(refusal) {
        button.focus();
        problem.replaceChildren(...explain(refusal));
        if (document.activeElement === button) problem.focus();
    }
    async function run(event) {
        event.preventDefault();
        if (isWorking || heldUntil > Date.now()) return;
        problem.replaceChildren();
        setBusy(true);
        try {
            if (mayBeSent(fields.filter((each) => each?.problem))) await submit();
        } catch (refusal) {
            if (refusal.kind === 'throttled') hold(refusal.retryAfterMs);
            else if (refusal.kind !== 'cancelled') showRefusal(refusal);
        } finally {
            setBusy(false);
        }
    }
    const api = {
        element: form,
        button,
        submitText,
        setSubmit(text, className) {
            api.submitText = text;
            button.className = className;
            if (!isWorking) button.textContent = text;
        },
    };
    return api;
}
