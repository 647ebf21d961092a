// Changing one's password, because one wants to or because somebody else has set it.
import {ACCOUNT, PASSWORD} from './account_texts.js';
import {call} from './api.js';
import {h, show} from './dom.js';
import {codeField, passwordField, userNameField, workingForm} from './form.js';
import {explainPassword, newPasswordField} from './new_password.js';
import {outsideCard} from './outside.js';
import {explain} from './parts.js';
import {currentSession, signOut} from './session.js';
import {explainProof} from './signin.js';
import {TEXTS} from './texts.js';

function explainChange(refusal, next, code) {
    return explainPassword(refusal, next, 'new_password') ? [] : explainProof(refusal, code, ACCOUNT.wrong);
}

export function passwordForm({done, cancel, cancelText}) {
    const {email} = currentSession().user;
    const missing = (value) => !value && PASSWORD.currentMissing;
    const current = passwordField({autofocus: true}, {label: PASSWORD.current, problem: missing});
    const next = newPasswordField(() => ({email, current: current.value()}));
    const code = codeField();

    return workingForm({
        fields: [userNameField(email), current, next, code],
        submitText: ACCOUNT.passwordSubmit,
        workingText: ACCOUNT.passwordWorking,
        cancel,
        cancelText,
        submit: async () => {
            await call('POST', '/v1/console/password', {
                current_password: current.value(),
                totp: code.value(),
                new_password: next.value(),
            });
            for (const {input} of [current, next, code]) input.value = '';
            done();
        },
        explain: (refusal) => explainChange(refusal, next, code),
    }).element;
}

// The page in place of all others, until the password was changed. Its only way out is to sign out.
export function requiredPasswordPage(done) {
    const problem = h('div', {role: 'alert'});
    const leave = () => signOut().catch((refusal) => show(problem, explain(refusal)));
    const card = outsideCard(
        ACCOUNT.passwordRequiredTitle,
        ACCOUNT.passwordRequired,
        problem,
        passwordForm({done, cancel: leave, cancelText: TEXTS.session.signOut}),
    );

    return {element: h('main', {class: 'lone', id: 'content'}, card)};
}
