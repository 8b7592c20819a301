/** What is stored encrypted: credentials for providers of models, signing secrets, and settings of skills. */

import { opensSealedSecrets, SigningSecrets } from '../../adapters/database/signing-secrets.ts';
import type { Context } from '../../core/context/context.ts';
import { Credentials } from '../../core/credentials/credentials.ts';
import { SkillSettings } from '../../core/skills/settings.ts';
import { Cipher } from '../../kernel/encryption.ts';
import type { Processes } from '../../platform/processes/processes.ts';

/** Warns of those that cannot be decrypted, and of signing secrets that are stored as they are. */
export async function composeSecrets(
  context: Context,
  encryptionKey: Buffer | null,
  processes: Processes | null,
) {
  const { database, log } = context;
  const cipher = encryptionKey === null ? null : new Cipher(encryptionKey);
  const credentials = new Credentials(context, cipher);
  const unusable = await credentials.countUnusable();
  if (unusable > 0) {
    log.warn(
      { credentials: unusable },
      'stored API keys of providers cannot be decrypted: put the encryption key back that they were stored under, or store them again',
    );
  }
  const skillSettings = new SkillSettings(context, cipher);
  const unusableSettings = await skillSettings.countUnusable();
  if (unusableSettings > 0) {
    log.warn(
      { settings: unusableSettings },
      'stored settings of skills cannot be decrypted: put the encryption key back that they were stored under, or store them again',
    );
  }
  const canAllOpen = () => processes?.canAll(opensSealedSecrets) ?? true;
  const signingSecrets = new SigningSecrets(database, cipher, canAllOpen);
  // In a cluster the scheduler does it, once every process can decrypt them.
  if (processes === null) await signingSecrets.sealStored();
  const unusableSecrets = await signingSecrets.countUnusable();
  if (unusableSecrets > 0) {
    log.warn(
      { secrets: unusableSecrets },
      'signing secrets of webhooks and triggers cannot be decrypted: put the encryption key back that they were stored under, or set new secrets',
    );
  }
  if (cipher === null && (await signingSecrets.areAnyPlain())) {
    log.warn(
      'signing secrets of webhooks and triggers are stored as they are, because ENCRYPTION_KEY is not set',
    );
  }
  return { credentials, signingSecrets, skillSettings };
}
