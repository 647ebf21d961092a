// A field for a new password, which says its rules before it is sent. The server has the last word: it knows the common
// passwords.
import {PASSWORD} from './account_texts.js';
import {foreign, h} from './dom.js';
import {passwordField} from './form.js';

const MIN = 12;
const MAX = 256;

// Counts code points, as the server does.
function problemOf(password, {email, current}) {
    const length = [...password].length;
    const [name] = email.toLowerCase().split('@');

    if (length === 0) return PASSWORD.missing;
    if (length < MIN) return PASSWORD.tooShort(length);
    if (length > MAX) return PASSWORD.tooLong;
    if (password === current) return PASSWORD.same;
    return name.length > 3 && password.toLowerCase().includes(name) && PASSWORD.hasEmail;
}

// about(): {email, current}: whose password it is, and the one they have now, if known.
export const newPasswordField = (about, attributes) =>
    passwordField(
        {name: 'new-password', autocomplete: 'new-password', minlength: MIN, ...attributes},
        {
            label: PASSWORD.choose,
            hint: [PASSWORD.rules, ' ', h('span', {class: 'rules-more'}, PASSWORD.rulesMore)],
            problem: (password) => problemOf(password, about()),
        },
    );

// True if the refusal is about the new password; then its field says why.
export function explainPassword(refusal, target, parameter) {
    if (refusal.param !== parameter) return false;
    target.setError(refusal.message ? foreign(refusal.message) : PASSWORD.weak);
    target.input.focus();
    return true;
}
