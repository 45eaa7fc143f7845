/** What Python sends (see scene.py), and what of anywidget's model the player uses. */

type Change = [element: string, state: string | null, texts?: Record<string, string>];
type Question = { text: string; choices: [element: string, label: string][]; right: string };
type Frame = { caption: string; changes: Change[]; focus: string | null; source: string | null; question?: Question };
type Pane = { svg: string; label: string };
type Facts = Record<string, [label: string, value: string][]>;
type Scene = {
  title: string;
  panes: Pane[];
  frames: Frame[];
  facts: Facts;
  legend: [name: string, meaning: string][];
  sources?: Record<string, string[]>;
  notes?: Record<string, string>;
  opens?: string[];
};
type Model = {
  get(name: string): any;
  set(name: string, value: any): void;
  save_changes(): void;
  on(event: string, listener: () => void): void;
  off(event: string, listener: () => void): void;
  widget_manager?: any;
};
type Elements = Map<string, SVGElement[]>;
type Timer = ReturnType<typeof setTimeout> | undefined;
