// Saves a file on the user's computer.
import {h} from './dom.js';

export function saveFile(name, blob) {
    const url = URL.createObjectURL(blob);

    h('a', {href: url, download: name}).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// A value that begins like a formula would be one for a spreadsheet.
const isFormula = (text) => /^[=+\-@\t\r]/.test(text);

function cell(value) {
    const text = typeof value === 'string' && isFormula(value) ? `'${value}` : String(value);

    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// RFC 4180.
export const csvOf = (rows) =>
    new Blob([rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('')], {type: 'text/csv'});
