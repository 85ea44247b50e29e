// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/begin/askplandialog.h"

#include "ui/begin/planasker.h"
#include "ui/runs/authorrows.h"
#include "ui/runs/runentry.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLabel>
#include <QPushButton>
#include <QSettings>
#include <QStandardPaths>
#include <QVBoxLayout>

namespace klineage::ui {

namespace {

QString askSettingsFile()
{
    return QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation)
           + QStringLiteral("/klineage/askplan.ini");
}

constexpr double usualCapDollars = 0.5;
constexpr const char *keptAuthorKeys[] = {"base_url", "command", "transcript"};

} // namespace

AskPlanDialog::AskPlanDialog(const llm::Request &request, const std::filesystem::path &workspace,
                             KeyRing *keys, QWidget *parent)
    : QDialog(parent)
    , m_request(request)
    , m_workspace(workspace)
    , m_cost(new QLabel)
{
    setWindowTitle(tr("Ask the author for the plan"));
    auto *what = new QLabel(tr(
        "The author sees the workload, the source and what the form says, and writes the launch plan. It lands in the "
        "form and is checked as what you type; nothing of it is gated by itself."));
    what->setWordWrap(true);
    m_cost->setWordWrap(true);
    m_cost->setObjectName(QStringLiteral("askCost"));
    m_cost->setMinimumHeight(fontMetrics().lineSpacing() * 3);
    m_cost->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
    m_ask = buttons->addButton(tr("Ask"), QDialogButtonBox::AcceptRole);
    m_ask->setDefault(true);
    auto *form = new QFormLayout;
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    m_author = new AuthorRows(form, keys, {tr("manual: a file that I answer in"), {}, usualCapDollars});
    auto *column = new QVBoxLayout(this);
    column->setSpacing(10);
    column->addWidget(what);
    column->addLayout(form);
    column->addWidget(m_cost);
    column->addStretch(1);
    column->addWidget(buttons);
    setMinimumWidth(520);
    connect(buttons, &QDialogButtonBox::accepted, this, &AskPlanDialog::accept);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_author, &AuthorRows::changed, this, &AskPlanDialog::update);

    const QSettings kept(askSettingsFile(), QSettings::IniFormat);
    run::Settings last = m_author->author();
    last.provider = kept.value(QStringLiteral("provider")).toString().toStdString();
    last.model = kept.value(QStringLiteral("model")).toString().toStdString();
    last.capDollars = kept.value(QStringLiteral("cap"), last.capDollars).toDouble();
    for (const char *key : keptAuthorKeys)
        last.author[key] = kept.value(QLatin1String(key)).toString().toStdString();
    m_author->setAuthor(last);
    update();
    m_author->setFocus();
}

run::Settings AskPlanDialog::settings() const
{
    return m_author->author();
}

void AskPlanDialog::update()
{
    m_ask->setEnabled(false);
    if (const QString problem = m_author->problem(); !problem.isEmpty()) {
        m_cost->setText(problem);
        return;
    }
    const run::Settings settings = m_author->author();
    const Result<QuestionCost> cost = PlanAsker::costOf(settings, m_request, m_workspace);
    if (!cost) {
        m_cost->setText(QString::fromStdString(cost.error().detail.empty()
                                                   ? cost.error().message
                                                   : cost.error().message + "\n" + cost.error().detail));
        return;
    }
    if (!cost->isPaid) {
        m_cost->setText(tr("Replies of this author cost nothing."));
    } else {
        const QString price =
            tr("The question will cost about %1, and at most %2, by the prices of %3.")
                .arg(formatDollars(cost->likely), formatDollars(cost->most), cost->priceDate);
        m_cost->setText(cost->most <= settings.capDollars
                            ? price
                            : tr("%1 That could pass the cap of %2: it would not be sent.")
                                  .arg(price, formatDollars(settings.capDollars)));
        if (cost->most > settings.capDollars)
            return;
    }
    m_ask->setEnabled(true);
}

void AskPlanDialog::accept()
{
    const run::Settings settings = m_author->author();
    QSettings kept(askSettingsFile(), QSettings::IniFormat);
    kept.setValue(QStringLiteral("provider"), QString::fromStdString(settings.provider));
    kept.setValue(QStringLiteral("model"), QString::fromStdString(settings.model));
    kept.setValue(QStringLiteral("cap"), settings.capDollars);
    for (const char *key : keptAuthorKeys) {
        const auto found = settings.author.find(key);
        kept.setValue(QLatin1String(key),
                      found == settings.author.end() ? QString() : QString::fromStdString(found->second));
    }
    QDialog::accept();
}

} // namespace klineage::ui
