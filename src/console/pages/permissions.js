// What the signed-in person's role allows. The API decides; the pages only do not offer what it would refuse.
import {ROLES} from './roles.js';
import {currentSession} from './session.js';

const ORDER = Object.keys(ROLES); // each may also do what those before it may

// least: the least role that may.
export const mayAs = (least) => ORDER.indexOf(currentSession()?.user.role) >= ORDER.indexOf(least);
