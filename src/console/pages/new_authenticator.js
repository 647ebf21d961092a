// Replacing one's authenticator: prove the old one, scan the new one, confirm it with a code.
import {ACCOUNT} from './account_texts.js';
import {closeFoot} from './action.js';
import {call} from './api.js';
import {confirmForm} from './authenticator.js';
import {openDialog} from './dialog.js';
import {announce} from './dom.js';
import {notice} from './form.js';
import {proofForm} from './signin.js';

const PATH = '/v1/console/totp';

export function openNewAuthenticator() {
    let isScanning = false;
    const end = (title, kind, text) => {
        isScanning = false;
        dialog.replace(title, notice(kind, text), closeFoot(dialog));
        announce(title);
    };
    const gone = () => end(ACCOUNT.factorGoneTitle, 'warn', ACCOUNT.factorGone);
    const cancel = () => dialog.close();
    const confirm = async (totp) => {
        await call('POST', `${PATH}/confirm`, {totp});
        end(ACCOUNT.factorDoneTitle, 'good', ACCOUNT.factorDone);
    };
    const prove = async (password, totp) => {
        const answer = await call('POST', PATH, {password, totp});

        isScanning = true;
        dialog.replace(
            ACCOUNT.factorScanTitle,
            confirmForm(answer, {
                submitText: ACCOUNT.factorConfirm,
                workingText: ACCOUNT.factorConfirming,
                cancel,
                send: confirm,
                late: gone,
            }),
        );
    };
    const dialog = openDialog({
        title: ACCOUNT.factorTitle,
        name: 'enrol',
        content: proofForm({
            lead: ACCOUNT.factorLead,
            submitText: ACCOUNT.factorStart,
            workingText: ACCOUNT.factorStarting,
            cancel,
            prove,
            wrong: ACCOUNT.wrong,
        }),
    });

    dialog.element.addEventListener('veil', () => {
        if (isScanning) gone();
    });
}
