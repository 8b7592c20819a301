/** Whether calls of a source's versions may succeed with what is set of it. */
import type { Json } from '../../kernel/json.ts';
import { definitionIn } from './definitions.ts';
import type { RemoteKind } from './remote-kind.ts';
import type { VersionRow } from './versions.store.ts';

export class Usability {
  readonly #kind: RemoteKind | undefined;
  readonly #source: { readonly settings: Json; readonly about: Json };

  /** `settings` and `about`: JSON, as the source has them. */
  constructor(kind: RemoteKind | undefined, settings: string, about: string) {
    this.#kind = kind;
    this.#source = { settings: JSON.parse(settings) as Json, about: JSON.parse(about) as Json };
  }

  /** Why calls of a version fail; null where they may succeed. It reads the version's definition. */
  faultOf(row: VersionRow): string | null {
    if (this.#kind?.whyUnusable === undefined) return null;
    return this.#kind.whyUnusable(this.#source, definitionIn(row).request);
  }
}
