// Times and numbers in words.
import {serverNow} from './clock.js';
import {h} from './dom.js';
import {TEXTS} from './texts.js';

const relative = new Intl.RelativeTimeFormat('en', {numeric: 'auto'});
const exact = new Intl.DateTimeFormat('en-GB', {dateStyle: 'medium', timeStyle: 'medium'});
const exactZone = new Intl.DateTimeFormat('en-GB', {dateStyle: 'medium', timeStyle: 'long'});
const clock = new Intl.DateTimeFormat('en-GB', {hour: '2-digit', minute: '2-digit'});
const clockExact = new Intl.DateTimeFormat('en-GB', {timeStyle: 'medium'});
const dayMonth = new Intl.DateTimeFormat('en-GB', {day: 'numeric', month: 'short', timeZone: 'UTC'});
const dayMonthYear = new Intl.DateTimeFormat('en-GB', {day: 'numeric', month: 'short', year: 'numeric'});
const number = new Intl.NumberFormat('en-GB');
const compact = new Intl.NumberFormat('en-GB', {notation: 'compact', maximumFractionDigits: 1});

const STEPS = [
    ['minute', 60],
    ['hour', 3600],
    ['day', 86400],
];
const WORDS_END_S = 30 * 86400;

export function timeInWords(iso) {
    const seconds = Math.round((serverNow() - Date.parse(iso)) / 1000);

    if (seconds < 45) return TEXTS.time.now;
    if (seconds >= WORDS_END_S) return dayMonthYear.format(new Date(iso));
    const [unit, size] = STEPS.findLast(([, least]) => seconds >= least) ?? STEPS[0];
    return relative.format(-Math.max(1, Math.round(seconds / size)), unit);
}

export const exactTime = (iso) => exact.format(new Date(iso));
export const exactTimeWithZone = (iso) => exactZone.format(new Date(iso));
export const clockTime = (iso) => clock.format(new Date(iso));
export const clockTimeExact = (iso) => clockExact.format(new Date(iso));
export const dayName = (date) => dayMonth.format(new Date(`${date}T00:00:00Z`));
export const count = (n) => number.format(n);
export const countShort = (n) => compact.format(n);

// The time in words, with the exact time on hover.
export function timeElement(iso) {
    if (!iso) return h('span', {class: 'faint'}, TEXTS.never);
    return h('time', {'datetime': iso, 'title': exactTime(iso), 'data-ticks': true}, timeInWords(iso));
}

// Both beside each other.
export const timeWithExact = (iso) => [timeElement(iso), h('span', {class: 'faint'}, ` · ${exactTime(iso)}`)];
export const exactTimeElement = (iso) => h('time', {datetime: iso}, exactTime(iso));

// Brings the words of all shown times up to date.
export function tickTimes() {
    for (const element of document.querySelectorAll('time[data-ticks]')) {
        const words = timeInWords(element.dateTime);

        if (element.textContent !== words) element.textContent = words;
    }
}

// The zone in which times are shown.
export const zoneName = () =>
    exactZone.formatToParts(new Date()).find(({type}) => type === 'timeZoneName')?.value ?? '';

export function wait(milliseconds) {
    const seconds = Math.max(0, Math.ceil(milliseconds / 1000));

    return seconds < 60 ? TEXTS.time.seconds(seconds) : TEXTS.time.timer(Math.floor(seconds / 60), seconds % 60);
}
