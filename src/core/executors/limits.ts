/**
 * The limits of a run's messages and of the protocol between the pool and its children. The child
 * applies them to give skills clear errors; the parent enforces them to protect itself.
 */

/** UTF-8 bytes of a run's output as JSON text. */
export const outputBytesMax = 1_048_576;
/** Levels of objects and arrays in an output. */
export const outputDepthMax = 64;
/** Bytes of one line on the socket; a child that sends more is killed. */
export const frameBytesMax = 8_388_608;
/** Characters after which a line is written and the next one begun. */
export const frameCharsSoft = 1_048_576;

/** Log lines of one attempt; one more says that the rest is left out. */
export const logLinesMax = 1_000;
/** Characters of a log line's message, and of its fields as JSON text. */
export const logCharsMax = 8_192;
/** Conversation messages of one attempt. */
export const messagesMax = 200;
/** UTF-8 bytes of a conversation message's content. */
export const messageBytesMax = 65_536;
/** Characters of a progress note. */
export const noteCharsMax = 1_024;
/** Milliseconds between two progress messages of one child. */
export const progressMs = 50;
/** Characters of an error message. */
export const errorCharsMax = 4_096;
/** Unanswered questions of one run. */
export const asksMax = 1_000;
/** UTF-8 bytes of a question's payload, and of its answer, as JSON text. */
export const askBytesMax = 1_048_576;
/** Bytes of the JSON around an output that is part of a question or an answer. */
export const envelopeBytes = 1_024;
/** Skills that call skills: levels below the run itself. */
export const callDepthMax = 8;

/** Bytes that a child may write to stdout and stderr together in a second; the rest is dropped. */
export const consoleBytesPerSecond = 65_536;
/** Errors outside of runs that a child reports in a second. */
export const straysPerSecond = 20;
