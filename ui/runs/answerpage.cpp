// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/answerpage.h"

#include "ui/runs/runcontroller.h"
#include "ui/runs/steptexts.h"
#include "ui/style/fonts.h"
#include "ui/style/keyedcommand.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>

namespace klineage::ui {

AnswerPage::AnswerPage(RunController *controller, QWidget *parent)
    : QWidget(parent)
    , m_controller(controller)
    , m_question(new QPlainTextEdit)
    , m_field(new QPlainTextEdit)
    , m_hint(new QLabel(tr("Write the reply as the rules in the question ask for it.")))
    , m_hand(new QPushButton(tr("Hand in")))
{
    for (QPlainTextEdit *edit : {m_question, m_field}) {
        edit->setFont(codeFont());
        edit->setFrameShape(QFrame::NoFrame);
    }
    m_question->setReadOnly(true);
    m_question->setAccessibleName(tr("Question of the run"));
    m_field->setAccessibleName(tr("Your reply"));
    m_field->setPlaceholderText(tr("Your reply: a few sentences, and the whole kernel in one fenced block"));
    m_hint->setForegroundRole(QPalette::PlaceholderText);

    auto *splitter = new QSplitter(Qt::Vertical);
    splitter->addWidget(m_question);
    splitter->addWidget(m_field);
    splitter->setStretchFactor(0, 3);
    splitter->setStretchFactor(1, 2);
    splitter->setChildrenCollapsible(false);
    auto *row = new QHBoxLayout;
    row->setContentsMargins(10, 5, 10, 6);
    row->addWidget(m_hint, 1);
    row->addWidget(m_hand);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(splitter, 1);
    layout->addLayout(row);
    setFocusProxy(m_field);

    connect(m_hand, &QPushButton::clicked, this, &AnswerPage::handIn);
    QAction *hand = addKeyedCommand(this, QStringLiteral("run.handIn"), tr("Hand in the reply to the run"),
                                    QKeySequence(Qt::CTRL | Qt::Key_Return));
    connect(hand, &QAction::triggered, this, &AnswerPage::handIn);
    setKeyedToolTip(m_hand, tr("Give the reply to the run"), hand);
}

void AnswerPage::setQuestion(const std::optional<llm::ManualDesk::Pending> &question)
{
    m_hand->setEnabled(question.has_value());
    m_number = question ? question->number : 0;
    if (!question)
        return;
    const QString text = requestText(question->request);
    if (text == m_question->toPlainText())
        return;
    m_question->setPlainText(text);
    // What is asked now stands last.
    m_question->moveCursor(QTextCursor::End);
    m_field->clear();
}

void AnswerPage::handIn()
{
    const QString problem = m_controller->answer(m_number, m_field->toPlainText());
    emit message(problem.isEmpty() ? tr("The reply was handed in.") : problem);
}

} // namespace klineage::ui
