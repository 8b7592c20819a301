/** What the verbs of accounts share. */
import type { Database } from '../../../adapters/database/database.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Cipher } from '../../../kernel/encryption.ts';
import type { Logger } from '../../../kernel/log.ts';
import type { RemoteSource } from '../remote-kind.ts';
import type { OauthClient } from './oauth-client.ts';

export interface AccountsDeps {
  readonly database: Database;
  readonly clock: Pick<Clock, 'now'>;
  /** Null without an encryption key: tokens can be neither stored nor used then. */
  readonly cipher: Cipher | null;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
  readonly outside: {
    /** Loads what asks authorization servers. */
    readonly open: () => Promise<OauthClient>;
    /** Address of the platform, if it is set. */
    readonly publicUrl: string | null;
    /** Closes its connections. */
    readonly close: () => Promise<void>;
    /** Called when an organization has connected or disconnected its account at a source. */
    readonly onChange: (sourceId: string, organizationId: string) => Promise<unknown>;
    /** Called when the account of an organization was deleted: what it was shown is not the organization's any more. */
    readonly onDisconnect: (sourceId: string, organizationId: string) => Promise<void>;
  };
}

export interface AccountsState extends AccountsDeps {
  /** Requests for new tokens that this process has under way, by account. */
  readonly refreshing: Map<string, Promise<void>>;
}

/** Of a source, what accounts depend on. */
export type AccountSource = Pick<RemoteSource, 'id' | 'name'> & { readonly url: string };
