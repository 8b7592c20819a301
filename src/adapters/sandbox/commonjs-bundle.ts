/** Bundles CommonJS modules into one script for a realm (realms.ts), which has no `require`. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/**
 * JavaScript that defines `bundled(name)`, which returns the exports of one of the named modules. It holds
 * these modules and all that they require by a literal name. `names` are resolved from the url `from`.
 */
export function bundleCommonJs(names: readonly string[], from: string): string {
  const modules = new Map<string, string>();
  const roots = names.map((name) => [name, add(createRequire(from).resolve(name), modules)]);
  return `const bundled = (() => {
    const modules = {${[...modules].map(([file, code]) => `${JSON.stringify(file)}: ${code}`).join(',\n')}};
    const loaded = {};
    function load(file) {
      if (!(file in loaded)) {
        loaded[file] = { exports: {} };
        modules[file](loaded[file], loaded[file].exports, load);
      }
      return loaded[file].exports;
    }
    const roots = ${JSON.stringify(Object.fromEntries(roots))};
    return (name) => load(roots[name]);
  })();`;
}

/** Adds the module and those that it requires; returns its name in the bundle. */
function add(file: string, modules: Map<string, string>): string {
  if (modules.has(file)) return file;
  const source = readFileSync(file, 'utf8');
  if (file.endsWith('.json')) {
    modules.set(file, `(module) => { module.exports = ${source}; }`);
    return file;
  }
  // Entered before its content is known, because modules may require each other.
  modules.set(file, '');
  const names: Record<string, string> = {};
  for (const [, name = ''] of source.matchAll(/\brequire\(["']([^"']+)["']\)/g)) {
    const required = resolved(name, file);
    if (required !== undefined) names[name] = add(required, modules);
  }
  modules.set(
    file,
    `(module, exports, load) => {
      const names = ${JSON.stringify(names)};
      const require = (name) => load(names[name]);
      (function () { ${source}
      }).call(exports);
    }`,
  );
  return file;
}

/** Undefined for what stands in a text or a comment only. */
function resolved(name: string, file: string): string | undefined {
  try {
    return createRequire(file).resolve(name);
  } catch {
    return undefined;
  }
}
