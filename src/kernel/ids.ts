import { randomFillSync } from 'node:crypto';

let lastMs = 0;
let sequence = 0;
let clockOfIds: () => number = () => Date.now();
/** The characters of the last id. Ids are written here, because an id of joined texts takes ten times the memory. */
const characters = Buffer.from('00000000-0000-7000-8000-000000000000');
const digits = Buffer.from('0123456789abcdef');
/** Random bytes of 512 ids, drawn at once. */
const random = Buffer.alloc(4_096);
let randomAt = random.length;

/**
 * Sets the clock of new ids. Processes that share a database also share its clock, because ids by the
 * clocks of several machines would not sort by creation.
 */
export function setIdClock(now: () => number): void {
  clockOfIds = now;
}

/**
 * A UUIDv7 that sorts by creation (docs/decisions/json-and-lists.md), within one process also inside a millisecond: the
 * twelve bits after the time are a counter (RFC 9562, section 6.2, method 1), which node:crypto's
 * own randomUUIDv7 leaves random.
 */
export function newId(): string {
  const now = clockOfIds();
  if (now > lastMs) begin(now);
  else if (++sequence > 0xfff) begin(lastMs + 1);
  characters[15] = digits[sequence >> 8] as number;
  writeByte(16, sequence & 0xff);
  writeRandom();
  return characters.toString('latin1');
}

/** Writes the two bits of the variant and 62 random ones. */
function writeRandom(): void {
  if (randomAt === random.length) {
    randomFillSync(random);
    randomAt = 0;
  }
  writeByte(19, 0x80 | (nextRandom() & 0x3f));
  writeByte(21, nextRandom());
  for (let at = 24; at < 36; at += 2) writeByte(at, nextRandom());
}

function nextRandom(): number {
  return random[randomAt++] as number;
}

function writeByte(at: number, byte: number): void {
  characters[at] = digits[byte >> 4] as number;
  characters[at + 1] = digits[byte & 0xf] as number;
}

/**
 * Makes all new ids sort after `id`. Call it when this process continues the work of another one: their
 * clocks may differ by some milliseconds, and by more while the network is slow.
 */
export function continueAfter(id: string): void {
  const ms = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
  const counter = Number.parseInt(id.slice(15, 18), 16);
  if (!(ms > lastMs || (ms === lastMs && counter > sequence))) return;
  begin(ms);
  sequence = counter;
}

function begin(ms: number): void {
  lastMs = ms;
  sequence = 0;
  const time = ms.toString(16).padStart(12, '0');
  characters.write(`${time.slice(0, 8)}-${time.slice(8)}`, 'latin1');
}

const idPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether a path parameter has the format of an id; any other one is not found. */
export function isId(text: string): boolean {
  return idPattern.test(text);
}

/** The smallest UUIDv7 of a time, to compare ids with a time. */
export function idFloor(ms: number): string {
  const hex = Math.max(0, Math.floor(ms)).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}

/** Names all agents of an organization, in the place of an agent's id. */
export const allAgents = '*';
