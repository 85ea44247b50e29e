// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/machine/machinepanel.h"

#include "core/lineage/step.h"
#include "ui/machine/codemodel.h"
#include "ui/machine/codeside.h"
#include "ui/machine/codeview.h"
#include "ui/machine/mixmodel.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/style/format.h"
#include "ui/style/plainwidgets.h"
#include "ui/style/segmentedswitch.h"

#include <QApplication>
#include <QClipboard>
#include <QLabel>
#include <QTableView>
#include <QTimer>
#include <QToolButton>

#include <algorithm>
#include <utility>

namespace klineage::ui {

namespace {

constexpr int busyAfterMs = 100;

} // namespace

MachinePanel::MachinePanel(WorkspaceModel *workspace, Selection *selection, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_selection(selection)
    , m_loader(new CodeLoader(this))
    , m_mix(new MixModel(this))
    , m_forms(new SegmentedSwitch({tr("SASS"), tr("PTX")}, SegmentedSwitch::Size::Small))
    , m_places(new SegmentedSwitch({tr("Older"), tr("Newer")}, SegmentedSwitch::Size::Small))
    , m_summary(new QLabel)
    , m_mixTable(makePlainTable(m_mix, tr("Instruction mix of both states")))
    , m_sides{new CodeSide(tr("older state")), new CodeSide(tr("newer state"))}
    , m_sideBorder(new QWidget)
    , m_busyTimer(new QTimer(this))
{
    layOut();
    makeCommands();
    m_busyTimer->setSingleShot(true);
    m_busyTimer->setInterval(busyAfterMs);
    connect(m_busyTimer, &QTimer::timeout, this, [this] {
        for (std::size_t i = 0; i < m_sides.size(); ++i) {
            if (m_pending[i])
                m_sides[i]->setMessage(tr("Reading…"));
        }
    });
    connect(m_forms, &SegmentedSwitch::currentChanged, this, &MachinePanel::refresh);
    connect(m_places, &SegmentedSwitch::currentChanged, this, [this](int place) {
        setActive(place);
        makeRoom();
    });
    connect(m_loader, &CodeLoader::arrived, this, &MachinePanel::take);
    connect(m_loader, &CodeLoader::finished, this, &MachinePanel::finish);
    connect(m_loader, &CodeLoader::progressed, this, [this](int at, const QString &text) {
        m_pending[at > 0 ? 1 : 0] = true;
        m_busyTimer->stop();
        side(at)->setLabel(m_wanted[at > 0 ? 1 : 0]->label);
        side(at)->setBusy(text);
        updateFocus();
        setCompiling(true);
    });
    for (int i : {0, 1}) {
        connect(side(i), &CodeSide::stopRequested, this, &MachinePanel::stop);
        connect(side(i), &CodeSide::startRequested, this, &MachinePanel::load);
        connect(side(i)->view(), &CodeView::sourceLineChosen, this, [this, i](int line) {
            m_lines[static_cast<std::size_t>(i)] = line;
            setActive(i);
            emit sourceLineChosen(i, line);
        });
    }
    connect(qApp, &QApplication::focusChanged, this, [this](const QWidget *, const QWidget *now) {
        for (int i : {0, 1}) {
            if (now && side(i)->isAncestorOf(now))
                setActive(i);
        }
    });
    connect(selection, &Selection::lineageChanged, this, &MachinePanel::refresh);
    connect(selection, &Selection::rowChanged, this, &MachinePanel::refresh);
    connect(selection, &Selection::baselineChanged, this, &MachinePanel::refresh);
    connect(workspace, &WorkspaceModel::loaded, this, [this] {
        m_isStale = true; // files may have changed
        refresh();
    });
    connect(workspace, &WorkspaceModel::lineageChanged, this, [this](const QString &key) {
        if (key == m_selection->lineageKey())
            refresh();
    });
    refresh();
}

MachinePanel::~MachinePanel() = default;

void MachinePanel::setCompiler(std::vector<std::string> command)
{
    m_loader->setCompiler(std::move(command));
    m_wanted = {};
    refresh();
}

void MachinePanel::setForm(CodeForm form)
{
    m_forms->setCurrentIndex(static_cast<int>(form));
}

CodeForm MachinePanel::form() const
{
    return m_forms->currentIndex() == 1 ? CodeForm::Ptx : CodeForm::Sass;
}

QString MachinePanel::summary() const
{
    return m_summaryText;
}

bool MachinePanel::isUpToDate() const
{
    return !m_loader->isBusy() && (!m_isStale || !isSeen());
}

bool MachinePanel::isSeen() const
{
    return isVisible() && !visibleRegion().isEmpty();
}

bool MachinePanel::isCompiling() const
{
    return m_isCompiling;
}

void MachinePanel::refresh()
{
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    const auto step = lineage ? lineage::findStep(*lineage, m_selection->row().toStdString(),
                                                  m_selection->baseline().toStdString())
                              : std::nullopt;
    CodeRequests wanted;
    if (step && step->left)
        wanted[0] = codeRequest(*lineage, *step->left, form());
    if (step)
        wanted[1] = codeRequest(*lineage, step->right, form());
    if (!step) {
        m_wanted = {};
        return showNothing(lineage ? tr("Select a state of the lineage to see its machine code.")
                                   : tr("Select a state of a lineage to see its machine code."));
    }
    if (wanted == m_wanted && !m_isStale)
        return;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        // The chosen line stays while only the form changes, or the other side.
        if (!wanted[i] || !m_wanted[i] || wanted[i]->file != m_wanted[i]->file)
            m_lines[i] = 0;
    }
    m_wanted = std::move(wanted);
    m_isStale = true;
    m_loader->cancel();
    setCompiling(false);
    if (isSeen())
        load();
    makeRoom();
}

void MachinePanel::showNothing(const QString &text)
{
    m_loader->cancel();
    m_isStale = false;
    m_pending = {};
    for (CodeSide *side : m_sides) {
        side->setLabel({});
        side->setMessage(text);
    }
    finish();
}

void MachinePanel::load()
{
    m_isStale = false;
    // What is shown stays until there is something else.
    for (std::size_t i = 0; i < m_sides.size(); ++i) {
        m_pending[i] = m_wanted[i].has_value();
        if (!m_pending[i])
            m_sides[i]->setMessage({});
    }
    m_busyTimer->start();
    m_loader->load(m_wanted);
}

void MachinePanel::take(int at, const SideCode &code)
{
    const std::size_t i = at > 0 ? 1 : 0;
    m_pending[i] = false;
    m_sides[i]->setLabel(m_wanted[i]->label);
    m_sides[i]->setCode(code);
    if (code.code)
        m_sides[i]->markLine(m_lines[i]);
    updateFocus();
}

/// A message takes no keys: then the panel itself does.
void MachinePanel::updateFocus()
{
    const CodeSide *active = side(m_active);
    setFocusProxy(active->code() ? active->view() : nullptr);
}

void MachinePanel::finish()
{
    m_busyTimer->stop();
    updateMix();
    setCompiling(false);
    if (const int steps = std::exchange(m_wantsHottest, 0))
        goToHottest(steps);
}

void MachinePanel::setCompiling(bool compiling)
{
    if (std::exchange(m_isCompiling, compiling) != compiling)
        emit compilingChanged(compiling);
}

void MachinePanel::stop()
{
    if (!m_loader->isBusy())
        return;
    m_loader->cancel();
    for (std::size_t i = 0; i < m_sides.size(); ++i) {
        if (std::exchange(m_pending[i], false))
            m_sides[i]->setStopped(tr("Compiling was stopped."));
    }
    finish();
}

void MachinePanel::updateMix()
{
    m_mix->setSides(m_sides[0]->code(), m_sides[0]->label(), m_sides[1]->code(), m_sides[1]->label());
    m_summaryText = m_mix->inOneLine();
    makeRoom();
}

void MachinePanel::chooseLine(int at, int line)
{
    m_lines[at > 0 ? 1 : 0] = line;
    setActive(at > 0 ? 1 : 0);
    side(at)->markLine(line);
}

void MachinePanel::setActive(int side)
{
    m_active = side;
    updateFocus();
    m_places->setCurrentIndex(side);
}

/// From the instruction that is current, in the order of their samples.
void MachinePanel::goToHottest(int by)
{
    if (!isSeen() || !isUpToDate()) {
        m_wantsHottest = by;
        return;
    }
    if (!side(m_active)->code() || side(m_active)->code()->hottest.empty()) {
        const int other = 1 - m_active;
        if (!side(other)->code() || side(other)->code()->hottest.empty()) {
            emit message(
                tr("No instruction here has samples: only SASS that a trial with counters kept has them."));
            return;
        }
        setActive(other);
    }
    const CodeSide *at = side(m_active);
    const std::vector<int> &hottest = at->code()->hottest;
    const auto found = std::find(hottest.begin(), hottest.end(), at->view()->currentIndex().row());
    const int now = found == hottest.end() ? -1 : static_cast<int>(found - hottest.begin());
    const int count = static_cast<int>(hottest.size());
    const int next = now < 0 ? (by > 0 ? 0 : count - 1) : now + by;
    if (next < 0 || next >= count) {
        emit message(next < 0
                         ? tr("This is the hottest instruction of %1.").arg(at->label())
                         : tr("These were the %1 hottest instructions of %2.").arg(count).arg(at->label()));
        return;
    }
    const int row = hottest[static_cast<std::size_t>(next)];
    at->view()->goToRow(row);
    const double share = 100.0 * static_cast<double>(at->code()->rows[static_cast<std::size_t>(row)].samples)
                         / static_cast<double>(at->code()->samples);
    emit message(tr("%1 of the %2 hottest instructions of %3: %4 % of its samples")
                     .arg(next + 1)
                     .arg(count)
                     .arg(at->label(), formatFixed(share, 1)));
}

void MachinePanel::copyRows()
{
    const QString text = side(m_active)->view()->selectedText();
    if (text.isEmpty()) {
        emit message(tr("No instruction is selected."));
        return;
    }
    QApplication::clipboard()->setText(text);
    emit message(tr("Copied %1 rows of %2.").arg(text.count(QLatin1Char('\n'))).arg(side(m_active)->label()));
}

/// A tab behind others is visible to Qt: that it is painted says that it came to the front.
void MachinePanel::paintEvent(QPaintEvent *event)
{
    QWidget::paintEvent(event);
    if (m_isStale || m_wantsHottest != 0)
        QMetaObject::invokeMethod(this, &MachinePanel::catchUp, Qt::QueuedConnection);
}

void MachinePanel::catchUp()
{
    if (!isSeen())
        return;
    if (m_isStale)
        load();
    else if (!m_loader->isBusy() && m_wantsHottest != 0)
        goToHottest(std::exchange(m_wantsHottest, 0));
}

void MachinePanel::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    makeRoom();
}

} // namespace klineage::ui
