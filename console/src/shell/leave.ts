/** Ways to leave this page. Each loads another page, without any state of this one. */
import { addressOf, section } from '../api/organization.ts';
import { readSession, signOut } from '../api/session.ts';
import { forgetKept } from '../chat/kept.ts';
import { tellProblem } from '../ui/toast.ts';

export async function leaveSignedOut(): Promise<void> {
  try {
    await signOut();
    forgetKept();
    location.replace('/console/');
  } catch (error) {
    tellProblem('Not signed out', error);
  }
}

/** Goes to another organization, to the list that one is at in this one. */
export async function enterOrganization(organization: string): Promise<void> {
  try {
    // Without a platform there would be no page at all.
    await readSession();
    location.assign(addressOf(organization, section()));
  } catch (error) {
    tellProblem('The organization was not changed', error);
  }
}
