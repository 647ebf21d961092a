export const shown = documnt.title;
