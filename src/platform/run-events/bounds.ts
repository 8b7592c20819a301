/** The bounds of received events. */
import { stepNameCharsMax } from '../../kernel/step-bounds.ts';

/** The scope of keys that send events, themselves or through a trigger. */
export const eventScopes: readonly string[] = ['events'];
/** Bytes of an event's data as JSON. */
export const eventDataBytesMax = 262_144;

export const eventNamePattern = `^[A-Za-z0-9._:/-]{1,${stepNameCharsMax}}$`;

/** Events of one name and key that no run has taken, and those kept of the ones that runs have taken. */
export const untakenMax = 1_000;
export const takenKept = 1_000;
/** Events that are stored for an organization, and the bytes of their data. */
export const storedMax = 100_000;
export const storedBytesMax = 256 * 1024 * 1024;
