/** Refuses messages of a server that would take long to parse, before they are. */
import { hasMoreMembers, isDeeperThan } from '../../../kernel/text.ts';
import { RemoteFault } from '../remote-kind.ts';

/** Shorter messages are parsed in some milliseconds, whatever they are. */
const lightCharsMax = 65_536;
const levelsMax = 200;
/** Parsing takes a tenth of a second for so many. */
const membersMax = 250_000;

/** Throws RemoteFault for the text of a message that is too deep or has too many members. */
export function refuseHeavy(text: string): void {
  if (text.length <= lightCharsMax) return;
  if (isDeeperThan(text, levelsMax)) {
    throw new RemoteFault(`The server sent a message of more than ${levelsMax} levels`);
  }
  if (hasMoreMembers(text, membersMax)) {
    throw new RemoteFault(`The server sent a message of more than ${membersMax} members`);
  }
}
