// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/docks/layouts.h"

#include <QCoreApplication>

namespace klineage::ui {

namespace {

QString tr(const char *text)
{
    return QCoreApplication::translate("klineage::ui::WindowLayout", text);
}

std::vector<WindowLayout> makeLayouts()
{
    const auto stack = [](const QStringList &docks, int share) { return DockStack{docks, share}; };
    return {
        {"review",
         tr("Review"),
         {stack({"library"}, 36), stack({"lineage"}, 64)},
         {stack({"card"}, 1)},
         {stack({"profile"}, 55), stack({"trajectory", "console", "problems"}, 45)},
         400,
         350,
         262,
         "diff"},
        {"curate",
         tr("Curate"),
         {stack({"library"}, 60), stack({"lineage"}, 40)},
         {stack({"card"}, 1)},
         {stack({"profile", "console", "problems"}, 1)},
         380,
         560,
         190,
         "diff"},
        {"run",
         tr("Run"),
         {stack({"library"}, 30), stack({"lineage"}, 70)},
         {},
         {stack({"console", "problems"}, 55), stack({"trajectory", "profile"}, 45)},
         420,
         0,
         320,
         "editor"},
        {"demo",
         tr("Demo"),
         {stack({"lineage"}, 1)},
         {},
         {stack({"trajectory"}, 58), stack({"profile"}, 42)},
         480,
         0,
         480,
         "diff"},
    };
}

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
