/** The generator's theme with the fonts of the reader's system, and the colours of the console. */
import theme from 'vitepress/theme-without-fonts';
import './style.css';

export default theme;
