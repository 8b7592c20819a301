/** The bounds of an event from outside. */
import { stepNameCharsMax } from '../kernel/step-bounds.ts';

/** The scope of keys that send events, themselves or through a trigger. */
export const eventScopes: readonly string[] = ['events'];
/** Bytes of an event's data as JSON. */
export const eventDataBytesMax = 262_144;

export const eventNamePattern = `^[A-Za-z0-9._:/-]{1,${stepNameCharsMax}}$`;
