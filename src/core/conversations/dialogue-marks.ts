/** What `messages.dialogue` says of a message, beside 1 for one that models are sent, and 0 for one that they are not, or not yet. */

/** Added to the value of a summary. */
export const summaryMark = 2;
/** Of an answer that its call did not finish. */
export const unfinishedMark = 4;
/** Of a message of a user that no guard could judge. */
export const leftOutMark = -1;
/** Of a message of a user whose guard has failed for now, in each attempt of a job. */
export const unjudgedMark = -2;
