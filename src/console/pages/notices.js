// What happened to one's sign-in meanwhile: failed attempts, new browsers, a used recovery code.
import {bullets, h, icon, newButton} from './dom.js';
import {timeElement} from './format.js';
import {NOTICES} from './notices_texts.js';

function lines({
    failed_sign_ins: failed,
    attacked_at: attacked,
    recovery_used_at: recovered,
    new_browsers: browsers = [],
}) {
    return [
        attacked ? [`${NOTICES.attacked} `, timeElement(attacked), '.'] : null,
        recovered ? [`${NOTICES.recovered} `, timeElement(recovered), '.'] : null,
        ...browsers.map(({browser, ip, signed_in_at: at}) => [
            NOTICES.newBrowser(browser, ip),
            ' ',
            timeElement(at),
            '.',
        ]),
        failed ? [NOTICES.failed(failed)] : null,
    ].filter(Boolean);
}

const accountLink = () => h('a', {href: '/console/account'}, NOTICES.account);

// Null if nothing happened. dismissed: called when the user has read it; without it, the notices stay.
export function noticesBar(notices, dismissed) {
    const news = lines(notices ?? {});
    const isGrave = Boolean(notices?.attacked_at || notices?.recovery_used_at || notices?.new_browsers?.length);

    if (!news.length) return null;
    return h(
        'section',
        {'class': `notice notices ${isGrave ? 'warn' : 'info'}`, 'aria-label': NOTICES.title},
        icon(isGrave ? 'warn' : 'info'),
        h(
            'div',
            null,
            h('h2', null, NOTICES.title),
            bullets(null, news),
            h(
                'p',
                null,
                dismissed ? [`${NOTICES.whatToDo} `, accountLink(), ` ${NOTICES.tell}`] : NOTICES.whatToDoHere,
            ),
        ),
        dismissed && newButton('plain icon-only', dismissed, icon('close'), {'aria-label': NOTICES.dismiss}),
    );
}
