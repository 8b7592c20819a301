/** For tests of the console's modules outside of a browser: they read the address of the page. */
Object.assign(globalThis, { location: new URL('http://platform.test/console/') });
