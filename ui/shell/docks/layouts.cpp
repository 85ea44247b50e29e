// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/docks/layouts.h"

#include <QCoreApplication>

namespace klineage::ui {

namespace {

QString layoutText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::WindowLayout", text);
}

// clang-format off
std::vector<WindowLayout> makeLayouts()
{
    using Stacks = std::vector<DockStack>;
    return {
        {.id = "review", .name = layoutText("Review"),
         .left = Stacks{{{"library"}, 36}, {{"lineage"}, 64}},
         .right = Stacks{{{"card"}, 1}},
         .bottom = Stacks{{{"profile", "machine", "story"}, 52}, {{"trajectory", "runs", "console", "problems"}, 48}},
         .leftWidth = 436, .rightWidth = 346, .bottomHeight = 270, .centre = "diff"},
        {.id = "curate", .name = layoutText("Curate"),
         .left = Stacks{{{"library"}, 58}, {{"lineage"}, 42}},
         .right = Stacks{{{"card"}, 1}},
         .bottom = Stacks{{{"profile", "machine", "runs", "console", "problems"}, 1}},
         .leftWidth = 400, .rightWidth = 540, .bottomHeight = 200, .centre = "diff", .cardsFirst = true},
        {.id = "run", .name = layoutText("Run"),
         .left = Stacks{{{"library"}, 30}, {{"lineage"}, 70}},
         .right = Stacks{},
         .bottom = Stacks{{{"runs", "console", "problems"}, 62}, {{"trajectory", "profile", "machine"}, 38}},
         .leftWidth = 436, .rightWidth = 0, .bottomHeight = 330, .centre = "editor"},
        {.id = "demo", .name = layoutText("Demo"),
         .left = Stacks{{{"lineage"}, 1}},
         .right = Stacks{},
         .bottom = Stacks{{{"story", "trajectory", "profile"}, 1}},
         .leftWidth = 520, .rightWidth = 0, .bottomHeight = 500, .centre = "diff", .subject = "story", .textScale = 1.3},
        {.id = "code", .name = layoutText("Code"),
         .left = Stacks{{{"lineage"}, 1}},
         .right = Stacks{},
         .bottom = Stacks{{{"machine", "profile", "console", "problems"}, 1}},
         .leftWidth = 300, .rightWidth = 0, .bottomHeight = 470, .centre = "diff"},
    };
}
// clang-format on

} // namespace

const std::vector<WindowLayout> &windowLayouts()
{
    static const std::vector<WindowLayout> layouts = makeLayouts();
    return layouts;
}

int findLayout(const QString &id)
{
    const auto &layouts = windowLayouts();
    for (std::size_t i = 0; i < layouts.size(); ++i) {
        if (layouts[i].id.compare(id, Qt::CaseInsensitive) == 0)
            return static_cast<int>(i);
    }
    return -1;
}

} // namespace klineage::ui
