/** What an erasure leaves of events and deliveries. */

/** What stands in place of the data of an event or a delivery. */
export const erasedData = '{"erased":true}';

/** How the body of an erased delivery ends. What a skill said may have the same text inside. */
export const erasedEnd = `,"data":${erasedData}}`;
