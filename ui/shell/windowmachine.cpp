// SPDX-License-Identifier: GPL-3.0-or-later
// The machine code of MainWindow, in step with its diff.
#include "ui/shell/mainwindow.h"

#include "ui/diff/diffpanel.h"
#include "ui/machine/instep.h"
#include "ui/shell/centre.h"
#include "ui/shell/statusline.h"

#include <QAction>

namespace klineage::ui {

MachinePanel *MainWindow::machinePanel() const
{
    return qobject_cast<MachinePanel *>(panel(QStringLiteral("machine")));
}

void MainWindow::connectMachine()
{
    MachinePanel *machine = machinePanel();
    keepInStep(machine, qobject_cast<DiffPanel *>(panel(QStringLiteral("diff"))));
    connect(machine, &MachinePanel::message, m_status, &StatusLine::say);
    connect(machine, &MachinePanel::compilingChanged, this, &MainWindow::updateStop);
    // Where it is not seen, walking through it shows it; the focus stays with the source.
    for (const char *id : {"machine.nextHottest", "machine.previousHottest"}) {
        QAction *walk = command(QLatin1String(id));
        addAction(walk);
        connect(walk, &QAction::triggered, this, [this, machine] {
            if (!machine->isSeen())
                raisePanel(QStringLiteral("machine"));
        });
    }
    addCommand(QStringLiteral("machine.show"), tr("Machine code"),
               QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_M),
               [this] { showPanel(QStringLiteral("machine")); });
}

} // namespace klineage::ui
