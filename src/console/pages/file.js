// Saves a file on the user's computer.
import {h} from './dom.js';

export function saveFile(name, blob) {
    const url = URL.createObjectURL(blob);

    h('a', {href: url, download: name}).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// Spreadsheets run what begins with such a sign as a formula; the last four are full-width. In some locales they separate
// cells by semicolons or tabs, within quotes too, and what follows begins a cell. As in the API's files (src/api/csv.c).
const FORMULA_BEGINS = /(^|[;\t\r\n])( *)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g;

const neutral = (text) => text.replace(FORMULA_BEGINS, "$1$2'").replace(/^(?=[\t\r])/, "'");

function cell(value) {
    const text = typeof value === 'string' ? neutral(value) : String(value);

    return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// RFC 4180.
export const csvOf = (rows) =>
    new Blob([rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('')], {type: 'text/csv'});
