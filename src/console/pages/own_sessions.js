// Where one is signed in, and ending it there.
import {ACCOUNT} from './account_texts.js';
import {redraw, openAction} from './action.js';
import {call, orNone} from './api.js';
import {announce, foreign, h, newButton, show} from './dom.js';
import {timeElement} from './format.js';
import {listTable, loading, skeletonRows} from './parts.js';

const PATH = '/v1/console/sessions';

function openEnd({title, text, submitText, path, said}, ended) {
    openAction({
        title,
        fields: [h('p', {class: 'wrap'}, text)],
        submitText,
        workingText: ACCOUNT.ending,
        buttonClass: 'danger',
        act: () => call('DELETE', path).catch(orNone), // a session that is gone is what was wanted
        done: () => {
            announce(said);
            ended();
        },
    });
}

function endButton(session, ended) {
    const words = {
        title: ACCOUNT.endTitle,
        text: ACCOUNT.endText(session),
        submitText: ACCOUNT.endSubmit,
        path: `${PATH}/${encodeURIComponent(session.id)}`,
        said: ACCOUNT.ended,
    };

    return newButton('danger-quiet small', () => openEnd(words, ended), ACCOUNT.end, {
        'aria-label': ACCOUNT.endNamed(session),
    });
}

function sessionRow(session, ended) {
    const {columns} = ACCOUNT;

    return h(
        'tr',
        {'data-id': session.id},
        h(
            'th',
            {scope: 'row'},
            h('span', {class: 'session-name'}, foreign(session.browser)),
            session.current ? h('span', {class: 'tag'}, ACCOUNT.current) : null,
        ),
        h('td', {'data-label': columns.ip, 'class': 'mono wrap'}, session.ip || '–'),
        h('td', {'data-label': columns.seen}, timeElement(session.last_seen_at)),
        h('td', {'data-label': columns.begun, 'class': 'begun-cell'}, timeElement(session.created_at)),
        h('td', {class: 'action-cell'}, session.current ? null : endButton(session, ended)),
    );
}

// {element, run, stop}
export function ownSessions() {
    const content = h('div', {class: 'sessions-space'});
    const others = h('div', {class: 'section-actions'});
    const words = {
        title: ACCOUNT.endOthersTitle,
        text: ACCOUNT.endOthersText,
        submitText: ACCOUNT.endOthersSubmit,
        path: PATH,
        said: ACCOUNT.othersEnded,
    };
    const endOthers = newButton('secondary small', () => openEnd(words, reload), ACCOUNT.endOthers);
    const loader = loading(content, {
        placeholder: () => skeletonRows(1),
        load: () => call('GET', PATH),
        draw,
    });

    function draw({data}) {
        const hasOthers = data.some((session) => !session.current);
        const rows = data.map((session) => sessionRow(session, reload));

        show(others, hasOthers ? endOthers : null);
        redraw(
            content,
            listTable('sessions', ACCOUNT.sessionsTable, ACCOUNT.columns, rows),
            h('p', {class: 'hint after-list'}, hasOthers ? ACCOUNT.notYou : ACCOUNT.noOthers),
        );
    }
    function reload() {
        call('GET', PATH).then(draw, () => loader.run());
    }
    return {content, others, run: loader.run, reload, stop: loader.stop};
}
